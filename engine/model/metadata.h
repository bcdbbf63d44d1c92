// What is known of an execution that has ended, beside its output.
#pragma once

#include "palmshed/result.h"

namespace palmshed::model {

ExecMetadata MetadataOf(const ExecResult& result);

}  // namespace palmshed::model
