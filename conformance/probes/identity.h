// What the sources of the probe `identity` share: each prints one thing that a process is or has.
#pragma once

void affinity(char** unused);
void capabilities(char** unused);
void confinement(char** unused);
void ids(char** unused);
void groups(char** unused);
void io_priority(char** unused);
void nice_value(char** unused);
void oom_score(char** unused);
void personality_bits(char** unused);
void process_attributes(char** unused);
void rlimits(char** unused);
void scheduler(char** unused);
void secure_bits(char** unused);
void session(char** unused);
void signals(char** unused);
void timer_slack(char** unused);
void uid_map(char** unused);
void umask_value(char** unused);
void user(char** unused);
