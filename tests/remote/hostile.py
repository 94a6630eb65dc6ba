"""What nobody means, and somebody types, pastes or is sent."""

from __future__ import annotations

TARGETS = (
    *("", " ", "-", "-oProxyCommand=touch canary", "-F/dev/null", "--", "user@-oProxyCommand=touch canary"),
    *("-l root@h", ";touch canary", "h;touch canary", "h\ntouch canary", "h\x00", "h\r", "h\t"),
    *("$(touch canary)", "`touch canary`", "h|touch canary", "h&touch canary", "h>canary", "h<x"),
    *("a b", "'h'", '"h"', "h'", "\\h", "h\\", "/", "h/x", "~", "~root", ".", "..", "%h", "%d", "h%p", "u%h@h"),
    *(
        "h:",
        "h:0",
        "h:65536",
        "h:-1",
        "h:22:22",
        "h:2２",
        "h: 22",
        "h:+22",
        "[::1",
        "::1]",
        "[::1]x",
        "[::1]:",
        "[h]:22",
    ),
    *("fe80::1%$(touch canary)", "fe80::1%", "@h", "u@", "u@@", "ssh://h", "h#x", "h!x", "h*", "h?", "{a,b}", "u$@h"),
    *("h\u202ex", "h\u2028x", "h\u00a0x", "\N{ZERO WIDTH SPACE}", "x" * 300, "h\udcff", "=", "h=x", "h,x", "(h)"),
)
"""For ssh. None of them may reach it."""

REFUSED = (
    *("", " ", "/", "//", "///", "/.", "/..", "~", "~/", "~//", "~/.", "~/..", "..", ".", "./x", "x/..", "x/../../y"),
    *("~root", "~root/x", "~nobody/x", "/workspace", "/x", "/home", "/root", "/tmp", "/usr", "/usr/local/x", "/etc/x"),
    *("/bin/x", "/lib/x", "/lib64/x", "/sbin/x", "/var/lib/x", "/var/log/x", "/proc/self/x", "/sys/x", "/dev/shm/x"),
    *("/boot/x", "/run/x", "/home/../etc/x", "/home//..//etc", "/etc/", "x\ny", "x\x00y", "x\ry", "x\ty", "x\x1b[2J"),
    *("x\x7fy", "x\x85y", "x\u2028y", "~/.ssh", "~/.ssh/x", "x/.git", "x/.uky-patch", "x/.git/hooks"),
)
"""Paths that can hold no tree, on any host."""

CARRIED = (
    *(
        "a b",
        "it's",
        'say "x"',
        "x$(touch canary)",
        "x`touch canary`",
        "x;touch canary",
        "x&touch canary",
        "x|y",
        "x>canary",
    ),
    *(
        "-rf",
        "--delete",
        "-e touch canary",
        "a/-x/b",
        "数据/张三",
        "naïve",
        "e\u0301",
        "x\\y",
        "x\\",
        "$HOME",
        "${IFS}x",
    ),
    *(
        "a*",
        "?",
        "[a]",
        "{a,b}",
        "#x",
        "!x",
        "x~",
        "a/~root",
        "%h",
        "a=b",
        "a:b",
        "...",
        "x ",
        " x",
        "\u202ex",
        "x\\ny",
    ),
)
"""Odd names below the home, to be taken as they stand."""
