// SPDX-License-Identifier: BSL-1.0
//
// All collectives of the Boost.MPI facade, for values, arrays, vectors and serialised objects on a
// boost::mpi::communicator. Each collective has a header of its own name.
#pragma once

#include "railpass/all_gather.hpp"
#include "railpass/all_gatherv.hpp"
#include "railpass/all_reduce.hpp"
#include "railpass/all_to_all.hpp"
#include "railpass/all_to_allv.hpp"
#include "railpass/barrier.hpp"
#include "railpass/broadcast.hpp"
#include "railpass/exscan.hpp"
#include "railpass/gather.hpp"
#include "railpass/gatherv.hpp"
#include "railpass/reduce.hpp"
#include "railpass/reduce_scatter.hpp"
#include "railpass/reduce_scatter_block.hpp"
#include "railpass/scan.hpp"
#include "railpass/scatter.hpp"
#include "railpass/scatterv.hpp"
