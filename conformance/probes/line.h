// The line of JSON of an attempt; attempts themselves use what probe.h offers.
#pragma once

// Starts anew: the attempt's name and its arguments.
void line_begin(const char* attempt, char** arguments, int count);
