/* ask.h - run a small program, give it a text, read its answer: on the loop, within a time.
 *
 * The program gets a session of its own, a clean environment and no descriptors of ours. Loop
 * thread only, which never waits for it. It is no way to run jobs: see shim.h. */
#ifndef ACRE_ENGINE_ASK_H
#define ACRE_ENGINE_ASK_H

#include "core/loop.h"
#include "core/str.h"

struct ask;

enum { ACRE_ASK_OUTPUT_MAX = 64 * 1024 };

/* `result`: 0, or ACRE_ETIMEOUT (it was killed). `exit_code`: 128 + signal when it was killed.
 * `output`: what it wrote to both streams until its end, valid during the call; what it writes
 * over ACRE_ASK_OUTPUT_MAX is refused to it. The question is gone when this returns. */
typedef void ask_done(void *context, int result, int exit_code, struct acre_str output);

/* `argv[0]` is the path; `env` NULL-terminated. Never calls `done` before it returned. */
int ask_start(struct acre_loop *loop, const char *const *argv, const char *const *env,
              const char *input, uint64_t timeout_ms, ask_done *done, void *context,
              struct ask **ret_ask, struct acre_error *err);
void ask_cancel(struct ask *ask); /* kills the program; NULL is fine */

#endif
