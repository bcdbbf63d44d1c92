// The driver as it is.
#include <boost/json/object.hpp>
#include <string_view>

#include "drivers/cpp/distortion.h"

namespace palmshed::conformance {

void PrepareDistortion() {}
bool Distorting() { return false; }
void DistortRequest(std::string_view, boost::json::object&) {}
bool Swallows(std::string_view) { return false; }
void DistortAnswer(std::string_view, boost::json::object&) {}

}  // namespace palmshed::conformance
