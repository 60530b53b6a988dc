/* symptom.h - what a failed job said last, and what that means for its retry (JOB-4).
 *
 * A program that finds the GPU's memory full, or the GPU taken, ends with an exit code of its own
 * choice; only its output says which. Pure, any thread, but for the reading of the file. */
#ifndef ACRE_DESK_SYMPTOM_H
#define ACRE_DESK_SYMPTOM_H

#include "sched/job.h"

enum { ACRE_SYMPTOM_TAIL_BYTES = 8192 }; /* a traceback of some frames */

/* OUT_OF_MEMORY or DEVICE_BUSY when the text says so in the words of CUDA, HIP or a framework;
 * CODE otherwise. `ret_words` (static) is what was recognised, "" for nothing. */
enum acre_exit_kind symptom_of(struct acre_str text, const char **ret_words);

/* The same for the last bytes of a file; CODE when it cannot be read. */
enum acre_exit_kind symptom_of_file(const char *path, const char **ret_words);

#endif
