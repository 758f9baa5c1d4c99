/* SPDX-License-Identifier: BSL-1.0
 *
 * The C interface of railpass, also for Fortran through ISO_C_BINDING (examples/fortran):
 * collectives, function sets, regions, halo exchange and statistics. The C++ headers document the
 * calls in full (railpass/mpi.hpp, function_set.hpp, region.hpp, halo_exchange.hpp). Link with
 * librailpass.
 *
 * All functions return an MPI error code. After MPI_ERR_OTHER, railpass_error_text() explains errors
 * that railpass itself found, except in collectives, whose errors the log explains. Handles are NULL
 * after a failure, and free functions accept NULL. All ranks of the communicator call collective
 * functions in the same order, and all ranks get the error, except if an argument is missing on one
 * rank only. Functions whose names end in _f take Fortran's handles (railpass_fint) of communicators
 * and datatypes, and are otherwise the same.
 */
#ifndef RAILPASS_RAILPASS_H
#define RAILPASS_RAILPASS_H

#include <mpi.h>
#include <stdint.h>

/** A handle of Fortran. The standard ABI of MPI 5.0 has no MPI_Fint: its handles of Fortran are int. */
#if defined(MPI_ABI_VERSION) && !defined(MPICH_VERSION) && !defined(OMPI_MAJOR_VERSION) && \
    !defined(I_MPI_VERSION)
#define RAILPASS_HAS_FROMINT
typedef int railpass_fint;
#else
typedef MPI_Fint railpass_fint;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Explains this thread's last call that returned MPI_ERR_OTHER. Local.
 * @return "" before the first such call; the text is owned by railpass and valid until the next */
const char* railpass_error_text(void);

/* ---- collectives: arguments as in MPI (see railpass/mpi.hpp) */

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

/* Neighbour collectives: `comm` has a topology. */

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

/** Sets the value of a setting, such as "policy", for `comm` alone. Local, but every rank must make
 * the same call before the communicator is tuned. */
int railpass_configure(MPI_Comm comm, const char* setting, const char* value);
int railpass_configure_f(railpass_fint comm, const char* setting, const char* value);
/** Starts tuning `comm` at its next call. Collective. */
int railpass_start_tuning(MPI_Comm comm);
int railpass_start_tuning_f(railpass_fint comm);
/** Writes the statistics, as JSON, of all communicators whose rank 0 is this process. Local; below
 * MPI_THREAD_MULTIPLE not while another thread calls railpass. */
int railpass_dump_statistics(const char* path);

/* ---- function sets: the fastest of several versions of an operation */

typedef struct railpass_set_s* railpass_set;

/** Creates a set whose calls are collective over `comm`; with MPI_COMM_SELF each rank has its own
 * set. Collective.
 * @param attributes `num_attributes` names
 * @param shape `num_sizes` sizes on which times depend; requests of one set with different shapes
 *   have separate statistics
 * @param features `num_features` sizes; requests with different features also have separate
 *   statistics, but start with the estimates of requests of equal shape, a few octaves away
 * @param set must be freed */
int railpass_set_create(const char* name, MPI_Comm comm, int num_attributes,
                        const char* const* attributes, int num_sizes, const int64_t* shape,
                        int num_features, const int64_t* features, railpass_set* set);
int railpass_set_create_f(const char* name, railpass_fint comm, int num_attributes,
                          const char* const* attributes, int num_sizes, const int64_t* shape,
                          int num_features, const int64_t* features, railpass_set* set);
/** Adds a version, before the first call, in the same order on all ranks. Local.
 * @param values a text for each attribute; texts that are numbers count as numbers */
int railpass_set_add(railpass_set set, const char* version, const char* const* values);
/** Starts a call. Collective, like the call itself, until railpass_set_end. After a failure do not
 * call railpass_set_end.
 * @param version receives the index, from 0, of the version that all ranks must run now */
int railpass_set_begin(railpass_set set, int* version);
/** Ends the call. Local. */
int railpass_set_end(railpass_set set);
/** Returns the index of the version in use, once the choice has converged; -1 until then. Local. */
int railpass_set_winner(railpass_set set, int* version);
/** Frees the set and sets the handle to NULL; the statistics stay with the communicator. Local. */
int railpass_set_free(railpass_set* set);

/* ---- regions: code whose time as a whole tunes the function sets called inside */

typedef struct railpass_region_s* railpass_region;

/** Creates a region, which must be freed. Collective. */
int railpass_region_create(const char* name, MPI_Comm comm, railpass_region* region);
int railpass_region_create_f(const char* name, railpass_fint comm, railpass_region* region);
/** Start and end of the region, on all ranks; nested regions end in the reverse order. */
int railpass_region_begin(railpass_region region);
int railpass_region_end(railpass_region region);
/** Frees the region and sets the handle to NULL. Local. */
int railpass_region_free(railpass_region* region);

/* ---- halo exchange: copies of the neighbours' elements around blocks of arrays */

typedef struct railpass_halo_s* railpass_halo;

/** Creates an exchange of `num_fields` arrays over a grid of all ranks of `comm` in row-major order.
 * Collective. A rank's array has no gaps and its last dimension is contiguous (in Fortran, name the
 * dimensions in reverse).
 * @param grid ranks in each of the `dimensions` dimensions
 * @param periodic not 0 for a periodic dimension
 * @param fields the first elements of the arrays, which must live as long as calls are made
 * @param interior elements of the rank's block in each dimension
 * @param width halo elements at either side in each dimension
 * @param type the datatype of an element, committed
 * @param corners not 0: also neighbours across edges and corners
 * @param halo must be freed */
int railpass_halo_create(MPI_Comm comm, int dimensions, const int* grid, const int* periodic,
                         int num_fields, void* const* fields, const int64_t* interior,
                         const int64_t* width, MPI_Datatype type, int corners, railpass_halo* halo);
int railpass_halo_create_f(railpass_fint comm, int dimensions, const int* grid, const int* periodic,
                           int num_fields, void* const* fields, const int64_t* interior,
                           const int64_t* width, railpass_fint type, int corners, railpass_halo* halo);
/** Exchanges the halos. Collective. */
int railpass_halo_exchange(railpass_halo halo);
/** Exchanges in two parts, for computation in between. Collective. */
int railpass_halo_begin(railpass_halo halo);
int railpass_halo_end(railpass_halo halo);
/** Copies the name of the version in use, once the choice has converged; "" until then. Local.
 * @param size of `name` in characters, including the final 0 */
int railpass_halo_winner(railpass_halo halo, char* name, int size);
/** Frees the exchange and sets the handle to NULL. Collective. */
int railpass_halo_free(railpass_halo* halo);
/** Estimates the best number of ranks in each dimension with the machine model. Collective.
 * @param global elements of the whole data in each dimension
 * @param grid receives the ranks in each dimension */
int railpass_suggest_grid(MPI_Comm comm, int dimensions, const int64_t* global, const int* periodic,
                          int64_t width, int64_t element_bytes, int corners, int* grid);
int railpass_suggest_grid_f(railpass_fint comm, int dimensions, const int64_t* global,
                            const int* periodic, int64_t width, int64_t element_bytes, int corners, int* grid);

#ifdef __cplusplus
}
#endif

#endif
