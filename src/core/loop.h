/* loop.h - an event loop on one thread (libuv): timers, signals, descriptors, and work posted by
 * other threads.
 *
 * Only the thread that runs the loop may call these functions, which they assert, except for
 * acre_loop_post, which any thread may call. Posted functions run in the order each producer posted
 * them, and the loop is woken only if it sleeps. While it does not run, another thread may take it
 * over; producers must be done before it is destroyed. */
#ifndef ACRE_CORE_LOOP_H
#define ACRE_CORE_LOOP_H

#include "core/error.h"

struct acre_loop;
struct acre_timer;
struct acre_watch;

typedef void acre_loop_function(void *context);

int acre_loop_create(struct acre_loop **ret_loop, struct acre_error *err);
void acre_loop_destroy(struct acre_loop *loop); /* NULL is fine; stops timers and signals */

/* Until stop, or nothing is left to wait for: no timer, signal or watch, nothing posted. (Posts
 * that may still come are not waited for: a loop that lives on them alone needs a signal.) */
int acre_loop_run(struct acre_loop *loop);
void acre_loop_stop(struct acre_loop *loop);

/* First after `delay_ms`, then every `period_ms` (0: once, and the timer is gone when its
 * function returns: do not cancel it after that). Functions may cancel their own timer. */
struct acre_timer *acre_loop_timer(struct acre_loop *loop, uint64_t delay_ms, uint64_t period_ms,
                                   acre_loop_function *function, void *context);
void acre_timer_cancel(struct acre_timer *timer); /* NULL is fine */

/* Until the loop is destroyed. A signal without a function keeps its default meaning. */
int acre_loop_signal(struct acre_loop *loop, int signal_number, acre_loop_function *function,
                     void *context, struct acre_error *err);

/* Call `function` whenever `fd` can be read (or has ended); again each turn until it was. The
 * descriptor stays the caller's and must be open until the watch is cancelled. */
struct acre_watch *acre_loop_watch(struct acre_loop *loop, int fd, acre_loop_function *function,
                                   void *context, struct acre_error *err); /* NULL: see err */
void acre_watch_cancel(struct acre_watch *watch);                          /* NULL is fine */

/* Call `function` in every turn, after everything else and before the loop may sleep: the place
 * to handle in one go what the turn brought. One function a loop; NULL: none. What it posts or
 * starts is handled in the next turn, without sleeping first. */
void acre_loop_each_turn(struct acre_loop *loop, acre_loop_function *function, void *context);

void acre_loop_post(struct acre_loop *loop, acre_loop_function *function, void *context);
/* Forget what was posted with this context and has not run: before `context` is freed, by the
 * loop's thread, when nobody posts it any more. */
void acre_loop_unpost(struct acre_loop *loop, const void *context);

#endif
