"""The pieces of C in docs/compute.md as programs, and how they are compiled and run.

The first block of C is a whole program; the others stand where that one has its lines between begin
and end. What a piece prints is the unmarked block that follows it.
"""
import os
import re
import shlex
import subprocess

import program

PAGE = os.path.join(program.SOURCE, "docs", "compute.md")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
MIDDLE = re.compile(r"^    /\* begin \*/\n.*^    /\* end \*/\n", re.M | re.S)
# A piece need not use all that the first program has.
COMPILER = [*shlex.split(os.environ.get("ACRE_CC", "cc")), "-std=gnu17", "-Wall", "-Werror",
            "-Wno-unused-function", "-g"]


def pieces(text):
    """(line, C, what it prints or None) of each block of C."""
    blocks = [(text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in BLOCK.finditer(text)]
    following = blocks[1:] + [(0, "c", "")]
    return [(line, body, output if what == "" else None)
            for (line, language, body), (_, what, output) in zip(blocks, following)
            if language == "c"]


def programs(text):
    """The same, each piece put into the first program."""
    found = pieces(text)
    frame = found[0][1]
    return [(line, frame if index == 0 else MIDDLE.sub(lambda _: body, frame), output)
            for index, (line, body, output) in enumerate(found)]


def read():
    with open(PAGE, encoding="utf-8") as file:
        return programs(file.read())


def compile_c(folder, text, *arguments):
    """The path of the program, and how its compilation ended."""
    source, binary = os.path.join(folder, "piece.c"), os.path.join(folder, "piece")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    return binary, subprocess.run([*COMPILER, source, "-o", binary, *arguments],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=program.TIMEOUT_S)


def run_on(binary, backend, folder, **changes):
    """Run it on a back end, with `folder` as home: nothing is cached before."""
    return subprocess.run([binary, backend], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=program.TIMEOUT_S,
                          env=program.environment(HOME=folder, XDG_CACHE_HOME=None, **changes))
