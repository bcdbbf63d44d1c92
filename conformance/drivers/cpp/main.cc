// The driver of the conformance kit over the public C++ API: the engine runs in this process.
#include "drivers/cpp/serve.h"

int main() { return palmshed::conformance::Serve(); }
