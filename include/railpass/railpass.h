/* SPDX-License-Identifier: BSL-1.0
 *
 * railpass for programs in C, and in Fortran through ISO_C_BINDING (examples/fortran): collectives,
 * function sets, regions, halo exchange, statistics. It says what the C++ headers say
 * (railpass/mpi.hpp, function_set.hpp, region.hpp, halo_exchange.hpp); link librailpass.
 *
 * All functions return an MPI error code. Where that is MPI_ERR_OTHER and railpass itself has found
 * what is wrong, railpass_error_text() says it. Handles are NULL after a failure, and free functions
 * take NULL. Collective functions are called by all ranks of the communicator, in the same order;
 * all of them get the error, but for arguments that are missing on one. Functions whose names end in _f take
 * Fortran's handles (MPI_Fint) of communicators and datatypes, and are otherwise the same.
 */
#ifndef RAILPASS_RAILPASS_H
#define RAILPASS_RAILPASS_H

#include <mpi.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What was wrong in this thread's last call that returned MPI_ERR_OTHER; "" before. The text is
 * railpass' and stays until the next such call. */
const char* railpass_error_text(void);

/* ---- collectives: as MPI's of the same meaning (see railpass/mpi.hpp) */

int railpass_broadcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int railpass_reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
                    MPI_Comm comm);
int railpass_all_reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm);
int railpass_reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type,
                            MPI_Op op, MPI_Comm comm);
int railpass_reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type,
                                  MPI_Op op, MPI_Comm comm);
int railpass_gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                    int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm);
int railpass_gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                     const int* receive_counts, const int* displacements, MPI_Datatype receive_type,
                     int root, MPI_Comm comm);
int railpass_scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                     int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm);
int railpass_scatterv(const void* send, const int* send_counts, const int* displacements,
                      MPI_Datatype send_type, void* receive, int receive_count,
                      MPI_Datatype receive_type, int root, MPI_Comm comm);
int railpass_all_gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm);
int railpass_all_gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                         const int* receive_counts, const int* displacements,
                         MPI_Datatype receive_type, MPI_Comm comm);
int railpass_all_to_all(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm);
int railpass_all_to_allv(const void* send, const int* send_counts, const int* send_displacements,
                         MPI_Datatype send_type, void* receive, const int* receive_counts,
                         const int* receive_displacements, MPI_Datatype receive_type, MPI_Comm comm);
int railpass_all_to_allw(const void* send, const int* send_counts, const int* send_displacements,
                         const MPI_Datatype* send_types, void* receive, const int* receive_counts,
                         const int* receive_displacements, const MPI_Datatype* receive_types,
                         MPI_Comm comm);
int railpass_scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm);
int railpass_exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm);
int railpass_barrier(MPI_Comm comm);

/* Between neighbours: `comm` has a topology. */

int railpass_neighbor_all_to_all(const void* send, int send_count, MPI_Datatype send_type,
                                 void* receive, int receive_count, MPI_Datatype receive_type,
                                 MPI_Comm comm);
int railpass_neighbor_all_to_allv(const void* send, const int* send_counts,
                                  const int* send_displacements, MPI_Datatype send_type, void* receive,
                                  const int* receive_counts, const int* receive_displacements,
                                  MPI_Datatype receive_type, MPI_Comm comm);
int railpass_neighbor_all_to_allw(const void* send, const int* send_counts,
                                  const MPI_Aint* send_displacements, const MPI_Datatype* send_types,
                                  void* receive, const int* receive_counts,
                                  const MPI_Aint* receive_displacements,
                                  const MPI_Datatype* receive_types, MPI_Comm comm);
int railpass_neighbor_all_gather(const void* send, int send_count, MPI_Datatype send_type,
                                 void* receive, int receive_count, MPI_Datatype receive_type,
                                 MPI_Comm comm);
int railpass_neighbor_all_gatherv(const void* send, int send_count, MPI_Datatype send_type,
                                  void* receive, const int* receive_counts, const int* displacements,
                                  MPI_Datatype receive_type, MPI_Comm comm);

/** Gives the communicator its own value of a setting, such as "policy". Local, equally on all ranks,
 * before the communicator is tuned. */
int railpass_configure(MPI_Comm comm, const char* setting, const char* value);
int railpass_configure_f(MPI_Fint comm, const char* setting, const char* value);
/** Tunes the communicator from its next call on. Collective. */
int railpass_start_tuning(MPI_Comm comm);
int railpass_start_tuning_f(MPI_Fint comm);
/** Writes what was learnt so far, as JSON, on the rank 0 of each communicator. Local. */
int railpass_dump_statistics(const char* path);

/* ---- function sets: the fastest of several versions of any operation */

typedef struct railpass_set_s* railpass_set;

/** A set whose calls are collective over `comm`; with MPI_COMM_SELF a rank's own. `attributes` are
 * `num_attributes` names; `shape` are `num_sizes` sizes on which times depend, as requests of one set
 * with different shapes learn apart. Those with different `features`, `num_features` sizes, do, too, but begin
 * with what is known of near ones: of equal shape, few octaves away. Collective. The set must be freed. */
int railpass_set_create(const char* name, MPI_Comm comm, int num_attributes,
                        const char* const* attributes, int num_sizes, const int64_t* shape,
                        int num_features, const int64_t* features, railpass_set* set);
int railpass_set_create_f(const char* name, MPI_Fint comm, int num_attributes,
                          const char* const* attributes, int num_sizes, const int64_t* shape,
                          int num_features, const int64_t* features, railpass_set* set);
/** One more version, before the first call, in the same order on all ranks: `values` has one text
 * for each attribute, and those that are numbers count as such. Local. */
int railpass_set_add(railpass_set set, const char* version, const char* const* values);
/** A call begins: `version` is the index, from 0, of the version that all ranks are to run now.
 * Collective, as is what follows until railpass_set_end. On a failure there is nothing to end. */
int railpass_set_begin(railpass_set set, int* version);
/** The call has ended. Local. */
int railpass_set_end(railpass_set set);
/** The index of the version that calls take, once that has settled; -1 until then. Local. */
int railpass_set_winner(railpass_set set, int* version);
/** Local; sets it to NULL. What was learnt stays with the communicator. */
int railpass_set_free(railpass_set* set);

/* ---- regions: a stretch of code whose time as a whole teaches the sets in it */

typedef struct railpass_region_s* railpass_region;

/** Collective. The region must be freed. */
int railpass_region_create(const char* name, MPI_Comm comm, railpass_region* region);
int railpass_region_create_f(const char* name, MPI_Fint comm, railpass_region* region);
/** Between these two on all ranks; regions end in the reverse order of their beginning. */
int railpass_region_begin(railpass_region region);
int railpass_region_end(railpass_region region);
/** Local; sets it to NULL. */
int railpass_region_free(railpass_region* region);

/* ---- halo exchange: the sides of blocks of arrays, which are the neighbours' */

typedef struct railpass_halo_s* railpass_halo;

/** An exchange of `num_fields` arrays of `dimensions` dimensions over a grid of all ranks of `comm`,
 * row by row: `grid` ranks in each dimension, periodic where `periodic` is not 0. A rank's block has
 * `interior` elements in each dimension and `width` of the neighbours' at either side, in an array
 * without gaps, whose last dimension lies together in memory (Fortran: name dimensions in reverse).
 * `fields` are the arrays' first elements; they must live as long as calls are made. `type` is an
 * element's, committed. With `corners` not 0 neighbours across edges and corners, too. Collective.
 * The exchange must be freed. */
int railpass_halo_create(MPI_Comm comm, int dimensions, const int* grid, const int* periodic,
                         int num_fields, void* const* fields, const int64_t* interior,
                         const int64_t* width, MPI_Datatype type, int corners, railpass_halo* halo);
int railpass_halo_create_f(MPI_Fint comm, int dimensions, const int* grid, const int* periodic,
                           int num_fields, void* const* fields, const int64_t* interior,
                           const int64_t* width, MPI_Fint type, int corners, railpass_halo* halo);
/** Collective. */
int railpass_halo_exchange(railpass_halo halo);
/** The same in two parts, for computation in between. Collective. */
int railpass_halo_begin(railpass_halo halo);
int railpass_halo_end(railpass_halo halo);
/** The name of the version that calls take, once that has settled, "" until then: `size` characters
 * at most, the last one 0. Local. */
int railpass_halo_winner(railpass_halo halo, char* name, int size);
/** Sets it to NULL. Collective. */
int railpass_halo_free(railpass_halo* halo);
/** How many ranks to have in each dimension for data of `global` elements, as the machine's model
 * says. Collective. */
int railpass_suggest_grid(MPI_Comm comm, int dimensions, const int64_t* global, const int* periodic,
                          int64_t width, int64_t element_bytes, int corners, int* grid);
int railpass_suggest_grid_f(MPI_Fint comm, int dimensions, const int64_t* global, const int* periodic,
                            int64_t width, int64_t element_bytes, int corners, int* grid);

#ifdef __cplusplus
}
#endif

#endif
