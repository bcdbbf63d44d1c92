// How much memory an engine and its sandboxes take.
#pragma once

namespace palmshed::benchmarks {

/// In KiB.
struct Share {
  double pss = 0;  ///< A page that n processes map counts as one n-th in each.
  double page_tables = 0;
};

struct Footprint {
  Share engine;     ///< This process and the helpers that belong to no sandbox.
  Share sandboxes;  ///< Their inits, and all below them.
  /// Of the whole machine, whoever uses it: slab, kernel stacks and memory of single processors.
  double kernel = 0;
};

/// Of this process and all below it, at this moment.
Footprint MeasureFootprint();

}  // namespace palmshed::benchmarks
