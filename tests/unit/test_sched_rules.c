/* Rules of the queue that were broken once, each as the smallest case that shows it. */
#include "support/sched_script.h"

#define PREEMPT                                                                                    \
    "\"policy\": \"priority\", \"preemption\": true, \"preempt_min_run\": \"60s\", "               \
    "\"preempt_grace\": \"30s\""

static const struct {
    const char *what, *cluster, *policy, *script;
} rules[] = {
    {"POL-7: a promised place is not taken when the owner has come to his hard quota since", "0 0",
     "{" PREEMPT ", \"quotas\": [{\"who\": \"user:bob\", \"running\": 1}]}",
     "job 1 ada 1 prio=1; "
     "job 2 ada 1 prio=1; "
     "go; "
     "at 100; "
     "job 3 bob 1 prio=3; "
     "go; "
     "state 2 preempted; "
     "exit 1 0; "
     "job 4 bob 0.5 prio=4; "
     "go; "
     "exit 2 0; "
     "go; "
     "run 2 4; "
     "wait 3"},
    {"POL-2: nobody yields to a job that its owner's hard quota keeps waiting", "0 0",
     "{" PREEMPT ", \"quotas\": [{\"who\": \"user:bob\", \"running\": 1}]}",
     "job 1 bob 1 prio=3; "
     "job 2 ada 1 prio=1; "
     "go; "
     "job 3 cid 1 prio=1; "
     "go; "
     "at 100; "
     "job 4 bob 1 prio=3; "
     "go; "
     "state 2 running"},
    {"POL-7: over its soft quota a job takes what is idle and nobody's place", "0 0",
     "{" PREEMPT ", \"quotas\": [{\"who\": \"user:bob\", \"gpus\": 1, \"soft\": true}]}",
     "job 1 bob 1 prio=3; "
     "job 2 ada 1 prio=1; "
     "go; "
     "at 100; "
     "job 3 bob 1 prio=3; "
     "go; "
     "state 2 running"},
    {"POL-7: two who pass their soft quotas do not preempt each other in turns", "0 0",
     "{" PREEMPT ", \"quotas\": [{\"who\": \"user:*\", \"gpus\": 1, \"soft\": true}]}",
     "job 1 ada 2; "
     "go; "
     "at 100; "
     "job 2 bob 2; "
     "go; "
     "state 1 running"},
    {"POL-7: who is over a soft quota does not keep room from one within", "0 0",
     "{\"quotas\": [{\"who\": \"user:bob\", \"gpus\": 1, \"soft\": true}]}",
     "job 1 bob 1; "
     "job 2 ada 1; "
     "go; "
     "job 3 bob 2; "
     "go; "
     "job 4 ada 1; "
     "go; "
     "exit 2 0; "
     "go; "
     "run 1 4"},
    {"POL-7: a memory quota counts the memory that comes with a share", "0 0",
     "{\"quotas\": [{\"who\": \"user:ada\", \"memory\": \"90GiB\"}]}",
     "job 1 ada 1; "
     "job 2 ada 1; "
     "go; "
     "run 1; "
     "wait 2; "
     "exit 1 0; "
     "go; "
     "run 2"},
    {"POL-7: a GPU quota counts the share that comes with memory", "0 0",
     "{\"quotas\": [{\"who\": \"user:ada\", \"gpus\": 1}]}",
     "job 1 ada 60000m; "
     "job 2 ada 60000m; "
     "go; "
     "run 1; "
     "wait 2; "
     "exit 1 0; "
     "go; "
     "run 2"},
    {"POL-8: a look that came too soon is made up for", "0 0",
     "{\"idle\": \"on-pressure\", \"idle_after\": \"10s\", \"idle_warn\": \"1s\"}",
     "job 1 ada 1; "
     "job 2 bob 1 fixed; "
     "go; "
     "job 3 cid 2; "
     "go; "
     "at 1; "
     "use 1 0; "
     "at 20; "
     "use 1 0; "
     "at 21; "
     "go; "
     "state 1 running; "
     "job 4 cid 0.5; "
     "go; "
     "state 1 running; "
     "due 22; "
     "at 22; "
     "go"},
    {"POL-2: who came to his turn by waiting is not stopped by every new one", "0",
     "{\"policy\": \"priority\", \"preemption\": true, \"priority_age\": \"1h\"}",
     "job 1 ada 1 prio=2 fixed; "
     "go; "
     "job 2 bob 1 prio=1; "
     "go; "
     "at 7300; "
     "exit 1 0; "
     "go; "
     "run 2; "
     "at 7400; "
     "job 3 cid 1 prio=3; "
     "go; "
     "state 2 running; "
     "at 7499; "
     "go; "
     "state 2 running; "
     "at 7500; "
     "go; "
     "state 2 preempted"},
    {"POL-6: one who comes before the head does not wait with those behind it", "0|0",
     "{\"policy\": \"priority\", \"backfill\": true}",
     "job 1 ada 1 est=600; "
     "go; "
     "job 2 bob 2x1 prio=3 est=60; "
     "job 3 cid 1 prio=3 est=3600; "
     "go; "
     "run 1; "
     "at 1; "
     "job 4 cid 1 prio=4 est=3600; "
     "go; "
     "run 1 4"},
    {"POL-6: when one placed before the head delays it, those who end in time may pass", "0 0 0",
     "{\"policy\": \"priority\", \"backfill\": true}",
     "job 1 ada 1 est=100; "
     "go; "
     "job 2 bob 3 prio=3; "
     "job 3 cid 1 est=150; "
     "go; "
     "run 1; "
     "at 10; "
     "job 4 dan 0.5 prio=4 est=300; "
     "go; "
     "run 1 3 4"},
    {"POL-6: and also those who were told a shorter time before", "0 0 0",
     "{\"policy\": \"priority\", \"backfill\": true}",
     "job 1 ada 1 est=20; "
     "go; "
     "job 2 bob 3 prio=3; "
     "job 3 cid 0.6 est=50; "
     "job 4 cid 1 est=1000; "
     "go; "
     "run 1; "
     "at 1; "
     "job 5 dan 1 prio=4 est=300; "
     "go; "
     "run 1 3 5"},
    {"POL-6: a run that was told to end is not expected to go on", "0 0", "{\"backfill\": true}",
     "job 1 ada 1 est=1000; "
     "go; "
     "job 2 bob 2 est=10; "
     "go; "
     "cancel 1; "
     "job 3 cid 1 est=500; "
     "go; "
     "run 1; "
     "wait 2 3"},
    {"POL-7: a head whose quota others of its owner have taken keeps no room", "0 0",
     "{\"backfill\": true, \"quotas\": [{\"who\": \"user:bob\", \"gpus\": 2}]}",
     "job 1 ada 0.1 est=100; "
     "go; "
     "job 2 bob 2; "
     "job 3 bob 0.7 est=30; "
     "job 4 cid 0.5 est=1000; "
     "go; "
     "run 1 3 4"},
    {"POL-7: what no place could make small enough for a hard quota is refused", "0 0",
     "{\"quotas\": [{\"who\": \"user:ada\", \"memory\": \"100GiB\"}, "
     "{\"who\": \"user:bob\", \"gpus\": 0.5}]}",
     "refuse DENIED memory job 1 ada 2; refuse DENIED GPUs job 1 bob 60000m; job 1 ada 1;"
     "job 2 bob 30000m; go; run 1 2"},
    {"POL-2: a job whose priority was lowered goes back behind those who come first", "0 0",
     "{\"policy\": \"priority\"}",
     "job 1 ada 2; "
     "go; "
     "job 2 bob 2 prio=3; "
     "job 3 cid 2 prio=2; "
     "go; "
     "wait 2 3; "
     "prio 2 1; "
     "go; "
     "wait 3 2; "
     "exit 1 0; "
     "go; "
     "run 3"},
    {"POL-6: another head: who ends before it begins may pass, though not before the last", "0 0 0",
     "{\"policy\": \"priority\", \"backfill\": true}",
     "job 1 ada 1 est=20; "
     "job 2 ada 1 est=100; "
     "go; "
     "job 3 bob 2 prio=2; "
     "job 4 bob 3 prio=1; "
     "job 5 cid 1 prio=1 est=50; "
     "go; "
     "run 1 2; "
     "at 1; "
     "job 6 dan 3 prio=4; "
     "go; "
     "run 1 2 5"},
    {"POL-7: what is promised counts against the quota: nobody yields in vain", "0 0",
     "{" PREEMPT ", \"quotas\": [{\"who\": \"user:bob\", \"gpus\": 1}]}",
     "job 1 ada 1 prio=1; "
     "job 2 ada 1 prio=1; "
     "go; "
     "at 100; "
     "job 3 bob 1 prio=3; "
     "go; "
     "job 4 bob 1 prio=3; "
     "go; "
     "at 102; "
     "go; "
     "state 1 running; "
     "state 2 preempted"},
    {"POL-7: of an owner over a soft quota only those yield that passed it", "0 0",
     "{" PREEMPT ", \"quotas\": [{\"who\": \"user:bob\", \"gpus\": 1, \"soft\": true}]}",
     "job 1 bob 1 prio=2; "
     "go; "
     "job 2 bob 1 prio=4; "
     "go; "
     "run 1 2; "
     "at 100; "
     "job 3 ada 1 prio=1; "
     "go; "
     "state 1 running; "
     "state 2 preempted"},
    {"POL-7: the share that comes with memory is rounded up: 40779 of 81559 MiB are 0.5", "0 0",
     "{\"quotas\": [{\"who\": \"user:ada\", \"gpus\": 0.5}]}",
     "refuse DENIED GPUs job 1 ada 40780m; "
     "job 1 ada 40779m; "
     "go; "
     "run 1"},
    {"POL-6: without a limit and an estimate a job takes what the policy says: in time", "0 0",
     "{\"backfill\": true, \"default_estimate\": 90}",
     "job 1 ada 1 est=100; "
     "go; "
     "job 2 bob 2; "
     "job 3 cid 1; "
     "go; "
     "run 1 3"},
    {"POL-6: without a limit and an estimate a job takes what the policy says: too long", "0 0",
     "{\"backfill\": true, \"default_estimate\": 110}",
     "job 1 ada 1 est=100; "
     "go; "
     "job 2 bob 2; "
     "job 3 cid 1; "
     "go; "
     "run 1"},
    {"POL-6: a run that overstays is expected to take a tenth of its time more", "0 0",
     "{\"backfill\": true}",
     "job 1 ada 1 est=1000; "
     "go; "
     "at 1011; "
     "job 2 bob 2; "
     "job 3 cid 1 limit=110; "
     "go; "
     "run 1; "
     "job 4 dan 1 limit=90; "
     "go; "
     "run 1 4"},
    {"POL-6: a run that overstays is expected to take a minute more at least", "0 0",
     "{\"backfill\": true}",
     "job 1 ada 1 est=100; "
     "go; "
     "at 111; "
     "job 2 bob 2; "
     "job 3 cid 1 limit=70; "
     "go; "
     "run 1; "
     "job 4 dan 1 limit=50; "
     "go; "
     "run 1 4"},
};

static void every_rule_holds(void) {
    for (size_t i = 0; i < ACRE_COUNT(rules); i++) {
        acre_test_context("%s", rules[i].what);
        CHECK_SCRIPT(rules[i].cluster, rules[i].policy, rules[i].script);
    }
}

static const struct acre_test tests[] = {
    {"every_rule_holds", every_rule_holds, 0},
};

ACRE_TEST_MAIN(tests)
