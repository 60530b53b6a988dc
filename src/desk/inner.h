/* inner.h - what the files of the desk ask of each other. Private to src/desk. Loop thread only. */
#ifndef ACRE_DESK_INNER_H
#define ACRE_DESK_INNER_H

#include "desk/state.h"

/* capacity.c: readings of a device came; the table is made, its rhythm begins, it ends. */
void desk_heard(struct acre_desk *desk, uint32_t device);
void desk_init_capacity(struct acre_desk *desk);
void desk_start_capacity(struct acre_desk *desk);
void desk_finish_capacity(struct acre_desk *desk);

/* desk.c */
void desk_set_node_reason(struct acre_desk *desk, uint32_t node, const char *reason);

/* devices.c: record a reservation as the ledger has it now. */
void desk_put_reservation(struct acre_desk *desk, uint64_t id);

/* engines.c */
void desk_close_engines(struct acre_desk *desk);
void desk_limit_engines(const struct acre_desk *desk); /* as the policy says */
/* The engine of the nodes that it holds. NULL: it holds none, or nodes of two engines. */
const struct desk_engine *desk_engine_of(const struct acre_desk *desk, const struct acre_job *job,
                                         struct acre_error *err);
void desk_forget_run(struct acre_desk *desk, struct acre_run run);
void desk_keep_output(struct acre_desk *desk, struct acre_run run, int stream, uint64_t offset,
                      const void *bytes, size_t length);

/* nodes.c */
void desk_put_node(struct desk_engine *engine, const struct acre_engine_node *node);
void desk_lose_node(struct desk_engine *engine, const char *name, const char *why);
void desk_remember_nodes(struct acre_desk *desk);
int desk_recall_nodes(struct acre_desk *desk, struct acre_error *err);

/* load.c: make the core again from the store. */
int desk_load(struct acre_desk *desk, struct acre_error *err);
void desk_unload(struct acre_desk *desk);
/* One that was never set is empty. */
int desk_read_setting(struct acre_desk *desk, const char *name, struct acre_buf *value,
                      struct acre_error *err);
/* After a load with an engine: adopt, start again, signal again, reap. */
void desk_adopt(struct acre_desk *desk);

/* turn.c */
void desk_turn(void *desk); /* at the end of each turn of the loop */
void desk_commit(struct acre_desk *desk, bool is_probe);
void desk_arm(struct acre_desk *desk);
void desk_note_reservations(struct acre_desk *desk, uint64_t now_ms);
void desk_event(void *desk, const struct acre_sched_event *event);
void desk_action(void *desk, const struct acre_sched_action *action);
void desk_changed(struct acre_desk *desk);
void desk_fail_waiters(struct acre_desk *desk, const struct acre_error *err);

/* run.c */
void desk_act(struct acre_desk *desk, const struct acre_sched_action *action);
struct acre_engine_sink desk_engine_sink(struct desk_engine *engine);
void desk_adopt_run(struct acre_desk *desk, const struct acre_job *job);
void desk_add_external(struct acre_desk *desk, uint64_t job);
void desk_forget_job(struct acre_desk *desk, uint64_t job); /* its row is committed, it is over */
void desk_set_text(struct acre_desk *desk, uint64_t job, const char *text);

#endif
