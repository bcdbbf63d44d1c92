// Where the test build of the driver lies. The driver itself is linked with faithful.cc, which
// changes nothing; the test build with mutants.cc, in which the environment variable
// PALMSHED_MUTANT names one deliberate defect (mutants.toml). A kit that passes a driver with a
// defect is no kit.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

namespace palmshed::conformance {

/// Called before there are threads.
void PrepareDistortion();
/// False: the other functions change nothing and need not be called.
bool Distorting();
/// Changes a request before it is carried out.
void DistortRequest(std::string_view op, boost::json::object& request);
/// True: the request is answered as if it had been carried out, and is not.
bool Swallows(std::string_view op);
/// Changes what is answered, or does something beside it.
void DistortAnswer(std::string_view op, boost::json::object& answer);

}  // namespace palmshed::conformance
