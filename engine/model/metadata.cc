#include "model/metadata.h"

#include "palmshed/result.h"
#include "palmshed/version.h"

namespace palmshed::model {

ExecMetadata MetadataOf(const ExecResult& result) {
  return {.id = result.id,
          .backend = result.backend,
          .spec_version = kSpecVersion,
          .started_at = result.started_at,
          .finished_at = result.finished_at,
          .duration = result.duration,
          .exit_code = result.exit_code,
          .timed_out = result.timed_out(),
          .cpu_time = result.cpu_time,
          .peak_memory = result.peak_memory,
          .signal = result.termination.signal,
          .timings = result.timings};
}

}  // namespace palmshed::model
