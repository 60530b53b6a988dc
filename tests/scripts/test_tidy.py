"""The checker checked: a small bad piece of text for every rule, and its good twin."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import load

tidy = load("tidy", pathlib.Path(__file__).parents[2] / "scripts" / "tidy")

TOP = "/* x */\n"
LONG = "int f(void) {\n" + "    g();\n" * 69 + "}\n"

# path, text, part of the message expected (None: nothing at all may be found)
CASES = [
    ("src/core/a.c", TOP + "int f(void) {\n    return 0;\n}\n", None),
    # sizes
    ("src/core/a.c", TOP + LONG, "f: 71 lines; at most 70"),
    ("src/core/a.c", TOP + LONG.replace("    g();\n", "", 1), None),
    ("src/core/a.c", TOP + "int f(int a,\n      int b) {\n" + "    g();\n" * 68 + "}\n", "f: 71"),
    ("src/core/a.c", TOP + "static const int t[] = {\n" + "    1,\n" * 90 + "};\n", None),
    ("src/core/a.c", TOP + "\n" * 800, "801 lines; at most 800"),
    ("src/core/a.h", TOP + "\n" * 150, "151 lines; at most 150"),
    ("src/core/a.c", TOP + "/*" + "x" * 99 + "*/\n", "103 columns"),
    # who may include whom
    ("src/core/a.c", TOP + '#include "ledger/fit.h"\n', 'core may not include "ledger/fit.h"'),
    ("src/ledger/a.c", TOP + '#include "core/buf.h"\n#include "ledger/fit.h"\n', None),
    ("src/ledger/a.c", TOP + '#include "device/sim.h"\n', "ledger may not include"),
    ("src/sim/a.c", TOP + '#include "device/sim.h"\n', None),
    ("src/sim/a.c", TOP + '#include "device/nvml.h"\n', "sim may not include"),
    ("src/cli/a.c", TOP + '#include "store/store.h"\n', "cli may not include"),
    ("src/api/compat/ray.c", TOP + '#include "engine/engine.h"\n', None),
    ("src/engine/a.c", TOP + '#include "api/http.h"\n', "engine may not include"),
    ("src/core/a.c", TOP + '#include "support/test.h"\n', "core may not include"),
    ("src/core/a.c", TOP + '#include "buf.h"\n', 'core may not include "buf.h"'),
    ("src/other/a.c", TOP, "not in the table"),
    ("src/core/a.c", TOP + '/* #include "ledger/fit.h" */\n', None),
    ("include/acre/a.h", TOP + '#include "core/buf.h"\n', "acre may not include"),
    ("src/device/a.c", TOP + "#include <nvml.h>\n", "vendor headers"),
    ("src/device/a.c", TOP + "#include <CL/cl.h>\n", "vendor headers"),
    # purity
    ("src/ledger/a.c", TOP + "#include <time.h>\n", "pure code may not include time.h"),
    ("src/ledger/a.c", TOP + "#include <sys/stat.h>\n", "pure code may not include sys/stat.h"),
    ("src/sched/a.h", TOP + '#include "core/clock.h"\n', "pure code may not include"),
    ("src/ledger/a.c", TOP + 'void f(void) {\n    printf("x");\n}\n', "may not call printf()"),
    ("src/ledger/a.c", TOP + 'void f(void) {\n    snprintf(b, 1, "x");\n}\n', None),
    ("src/ledger/a.c", TOP + "void f(FILE *to);\n", "pure code may not use FILE"),
    ("src/core/a.c", TOP + "#include <time.h>\n", None),
    # banned calls
    *[("tests/unit/a.c", TOP + f"void f(void) {{\n    CHECK(1);\n    {name}(x);\n}}\n", name + "()")
      for names in tidy.BANNED_CALLS for name in names.split()],
    ("src/core/a.c", TOP + '/* strcpy(a, b) */\nconst char *const t = "strcpy(a)";\n', None),
    ("src/core/a.c", TOP + "void f(void) {\n    my_strcpy(a);\n    ops->sleep(a);\n}\n", None),
    ("src/core/a.c", TOP + "#define BAD(a) \\\n    strcpy(a)\n", "strcpy()"),
    ("src/core/a.c", TOP + "void f(void) {\n    free(malloc(1));\n}\n", "malloc()"),
    ("src/core/base.c", TOP + "void f(void) {\n    free(malloc(1));\n}\n", None),
    # calls of a driver that wait for every kernel
    ("src/compute/a.c", TOP + "void f(void) {\n    c->table->unload(p, m);\n}\n", "unload(): a d"),
    ("src/compute/memory/a.c", TOP + "void f(void) {\n    t->region_destroy(p);\n}\n", "quiet.h"),
    ("src/compute/a.c", TOP + "void f(void) {\n    rings_pause(c);\n}\n", "rings_pause(): use"),
    ("src/compute/a.c", TOP + "void f(void) {\n    quiet_unload(q, m);\n}\n", None),
    ("src/compute/a.c", TOP + "bool f(void) {\n    return t->region_import == 0;\n}\n", None),
    ("src/compute/quiet.c", TOP + "void f(void) {\n    t->unload(p, m);\n}\n", None),
    ("src/compute/runner/a.c", TOP + "void f(void) {\n    t->unload(p, m);\n}\n", None),
    # mutable state
    ("src/core/a.c", TOP + "static int count;\n", "mutable variable"),
    ("src/core/a.c", TOP + "int count = 1;\n", "mutable variable"),
    ("src/core/a.c", TOP + "static int (*hook)(void);\n", "mutable variable"),
    ("src/core/a.c", TOP + "static const char *names[] = {\"a\"};\n", "mutable variable"),
    ("src/core/a.c", TOP + "static const char *const names[] = {\"a\"};\n", None),
    ("src/core/a.c", TOP + "static struct {\n    int a;\n} t[] = {{1}};\n", "mutable variable"),
    ("src/core/a.c", TOP + "void f(void) {\n    static int n = 0;\n}\n", "mutable variable"),
    ("src/core/a.c", TOP + "void f(void) {\n    static int n[SIZE(a) + 1];\n}\n",
     "mutable variable"),
    ("src/core/a.c", TOP + "void f(void) {\n    static const struct {\n        int a;\n    } t[] ="
     " {{1}};\n}\n", None),
    ("src/core/a.c", TOP + "struct a;\nstruct b {\n    int x;\n};\nenum c { C };\nint f(int);\n"
     "typedef int g(void);\nextern const int x;\n_Static_assert(1, \"\");\n", None),
    ("src/core/log.c", TOP + "static int level;\n", None),
    # text
    ("src/core/a.c", "int f(int);\n", "must open with a comment"),
    ("src/core/a.h", "#pragma once\n", "must open with a comment"),
    ("src/core/a.c", TOP + "/* x */ \n", "blanks at the end"),
    ("src/core/a.c", TOP + "/*\tx */\n", "tab"),
    ("src/core/a.c", TOP + "/* x */", "no newline at the end"),
    ("src/core/a.c", TOP + "/* TO" "DO: more */\n", "unfinished: TO" "DO"),
    ("README.md", "FIX" "ME\n", "unfinished"),
    ("src/core/a.c", TOP + "/* mkstemp(XXXXXX) */\n", None),
    ("docs/a.md", "see /ho" "me/me/x\n", "path of one machine"),
    ("docs/a.md", "see /usr/share/x and src/home/x\n", None),
    ("tests/fuzz/corpus/x/a.c", "TO" "DO \n", "must open with a comment"),
    # words, where people read them
    ("README.md", "The daemon tells why.\n", "'tells': write says, reports, shows"),
    ("docs/a.md", "Whoever asks is told\nanew.\n", "'Whoever': write the caller that"),
    ("docs/a.md", "Two GPUs can be told apart; besides, foretold\n", None),
    ("docs/a.md", "acre serve --run-as nobody, or as `nobody`\n", None),
    ("docs/a.md", "nobody waits\n", "'nobody': write no one, none"),
    ("docs/benchmarks/enforcement.md", "each is told 66\n", None),
    ("include/acre/a.h", TOP + "/* as whoever called it */\n", "'whoever'"),
    ("src/core/a.c", "/* a.c - tells the time. */\n", "'tells'"),
    ("src/core/a.h", "/* a.h - tells the time. */\n", "'tells'"),
    ("src/core/a.c", TOP + "/* nobody reads this */\n/* TOP told */\n", None),
    ("src/core/a.c", TOP + 'const char *const t = "beside it";\n', "'beside': write next to"),
    ("src/core/a.c", TOP + 'const char *const t = "nobody";\nint told(void);\n', None),
    ("src/core/a.c", TOP + 'const char *const t = "cancelled";\n', "'cancelled': write canceled"),
    ("src/core/a.c", TOP + 'const char *const t = "cancellation, colors, behavior";\n', None),
    # tests, python, shell
    ("tests/unit/test_a.c", TOP + "void f(void) {\n    g();\n}\n", "checks nothing"),
    ("tests/unit/test_a.c", TOP + "/* CHECK(x) */\n", "checks nothing"),
    ("tests/unit/test_a.c", TOP + "void f(void) {\n    CHECK_EQ(1, 1);\n}\n", None),
    ("scripts/a", "#!/usr/bin/env python3\ndef f(:\n", "python: "),
    ("a.py", "import os\n", "'os' is imported and not used"),
    ("a.py", "import os\nprint(os.name)\n", None),
    ("a.py", "def f():\n" + "    print()\n" * 70, "f: 71 lines"),
    ("scripts/a", "#!/bin/sh\nif true; then\n", "sh: "),
    ("scripts/a", "#!/bin/sh\ntrue\n", None),
]


class Rules(unittest.TestCase):
    def test_bad_is_found_and_good_is_not(self):
        for path, text, expected in CASES:
            with self.subTest(path=path, text=text[-60:]):
                found = [message for _, _, message in tidy.check_file(tidy.File(path, text))]
                if expected is None:
                    self.assertEqual(found, [])
                else:
                    self.assertTrue(any(expected in message for message in found), found)

    def test_violations_name_the_line(self):
        file = tidy.File("src/core/a.c", TOP + "\n/* a\n b */\nvoid f(void) {\n    gets(x);\n}\n")
        self.assertEqual([line for _, line, _ in tidy.check_file(file)], [6])

    def test_a_word_is_found_at_its_line(self):
        file = tidy.File("src/core/a.c", TOP + "/* told */\nconst char *const t =\n    \"anew\";\n")
        self.assertEqual([line for _, line, _ in tidy.check_file(file)], [4])

    def test_every_banned_word_has_a_better_one(self):
        for word, better in tidy.BANNED_WORDS.items():
            with self.subTest(word=word):
                file = tidy.File("docs/a.md", better + "\n")
                self.assertEqual(list(tidy.check_words(file)), [])

    def test_every_c_file_is_named_in_a_meson_file(self):
        texts = {
            "src/core/meson.build": "files('a.c', 'sub/b.c')",
            "tests/unit/meson.build": "'core_a': []",
            "src/core/a.c": "", "src/core/sub/b.c": "", "src/core/c.c": "",
            "tests/unit/test_core_a.c": "", "tests/unit/test_core_b.c": "",
        }
        files = {path: tidy.File(path, text) for path, text in texts.items()}
        self.assertEqual(sorted(path for path, _, _ in tidy.check_listed(files)),
                         ["src/core/c.c", "tests/unit/test_core_b.c"])

    def test_every_directory_of_the_table_includes_only_known_ones(self):
        for directory, allowed in tidy.INCLUDES.items():
            for name in allowed.split():
                self.assertIn(name.split("/")[0], tidy.INCLUDES, directory)

    def test_layers_have_no_cycle(self):
        def below(house, seen):
            self.assertNotIn(house, seen)
            rows = [row for name, row in tidy.INCLUDES.items() if name.split("/")[0] == house]
            for name in {name.split("/")[0] for row in rows for name in row.split()} - {house}:
                below(name, seen + [house])
        for house in {name.split("/")[0] for name in tidy.INCLUDES}:
            below(house, [])

    def test_a_cycle_of_headers_is_found(self):
        texts = {"src/core/a.h": '#include "core/b.h"\n', "src/core/b.h": '#include "core/c.h"\n',
                 "src/core/c.h": '\n#include "core/b.h"\n', "src/core/d.h": '#include "core/b.h"\n'}
        files = {path: tidy.File(path, text) for path, text in texts.items()}
        self.assertEqual([(path, line) for path, line, _ in tidy.check_cycles(files)],
                         [("src/core/c.h", 2)])

    def test_the_prefix_says_whether_other_directories_may_call(self):
        texts = {"src/sched/a.c": '#include "ledger/shown.h"\n#include "sched/inner.h"\n',
                 "src/ledger/shown.h": "int acre_fit(int n);\nint fit(struct x *x);\n",
                 "src/ledger/inner.h": "int acre_fit_find(\n  int n);\nextern const int acre_t[];\n"
                                       "int fit_find(void);\n#define acre_x(n) (n)\n"
                                       "int acre_public(void);\n",
                 "include/acre/a.h": "int acre_public(void);\n"}
        files = {path: tidy.File(path, text) for path, text in texts.items()}
        self.assertEqual(sorted((path, line) for path, line, _ in tidy.check_prefix(files)),
                         [("src/ledger/inner.h", 1), ("src/ledger/inner.h", 3),
                          ("src/ledger/shown.h", 2)])

    def test_tags_are_unique(self):
        texts = {"src/core/a.c": "struct one {\n    int n;\n};\nenum two { A };\n",
                 "src/desk/b.h": "struct one;\nstruct three {\n    struct one *one;\n};\n",
                 "src/desk/c.c": "\nstruct one { int n; };\nunion two { int n; };\n"}
        files = {path: tidy.File(path, text) for path, text in texts.items()}
        self.assertEqual([(path, line) for path, line, _ in tidy.check_tags(files)],
                         [("src/desk/c.c", 2), ("src/desk/c.c", 3)])

    def test_files_of_one_name_are_the_same_idea(self):
        paths = ["src/core/a.c", "src/desk/a.c", "src/desk/a.h", "src/api/submit.c",
                 "src/cli/submit.c", "tests/unit/a.c"]
        files = {path: tidy.File(path, "") for path in paths}
        self.assertEqual([path for path, _, _ in tidy.check_base_names(files)], ["src/desk/a.c"])
