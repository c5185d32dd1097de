"""What must not stand in a source: banned calls, machine paths, open ends."""

import re

SOURCES = (".h", ".cc")

# (what, its replacement, where it is allowed all the same)
BANNED = [
    (r"\b(?:std::)?(?:strto(?:l|ul|ll|ull|d|f|ld)|ato(?:i|l|ll|f)|sscanf|sto(?:i|l|ul|ll|ull|d|f))\s*\(",
     "base/text.h or std::from_chars", r"^src/base/text\.cc$|^tests/|^bench/|_test\.(cc|h)$"),
    (r"\b(?:system_clock|high_resolution_clock|steady_clock)::now\b|\bgettimeofday\s*\(|\bclock_gettime\s*\(",
     "Clock of base/clock.h", r"^src/base/clock\.|^bench/"),
    (r"\bsleep_for\b|\bsleep_until\b|\b(?:usleep|nanosleep)\s*\(",
     "Clock::SleepMs of base/clock.h", r"^src/base/clock\."),
    (r"\buniform_(?:int|real)_distribution\b|\brandom_device\b|\bmt19937|\b(?:s?rand|random)\s*\(",
     "Dice of base/dice.h", r"^src/base/dice\.|^src/cli/"),  # An edge may make a seed.
]

# Spelled in pieces, so that this list is not its own finding.
HOSTS = ["crates" + ".io", "py" + "pi.org", "python" + "hosted.org",
         "proxy." + "golang.org", "registry." + "npmjs.org", "repo1." + "maven.org",
         "repo.maven." + "apache.org", "deb." + "debian.org"]
PATHS = ["/" + "root/", "/" + "home/", "/" + "work/"]
# Written by the package clients, which put their index's address in.
LOCK_FILES = ("Cargo.lock", "package-lock.json", "go.sum")


def without_comments(text: str) -> str:
    """`text` with comments and string contents blanked, line numbers kept."""

    def blank(found: re.Match) -> str:
        token = found[0]
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]

    return re.sub(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',
        blank, text, flags=re.S)


def banned_calls(files: dict[str, str]) -> dict[str, int]:
    """`path: call: use replacement` -> how often, for calls that the product replaces by a
    seam or a stricter function."""
    found: dict[str, int] = {}
    for path, text in files.items():
        if not path.endswith(SOURCES):
            continue
        for line in without_comments(text).splitlines():
            for pattern, instead, allowed in BANNED:
                call = re.search(pattern, line)
                if call and not re.search(allowed, path):
                    key = f"{path}: {call[0].strip('( ')}: use {instead}"
                    found[key] = found.get(key, 0) + 1
    return found


def check_headers(files: dict[str, str]) -> list[str]:
    """Headers open with their contract, guard themselves and import no names."""
    found = []
    for path, text in files.items():
        if not path.endswith(".h"):
            continue
        if not text.startswith("//"):
            found.append(f"{path}:1: a header begins with a comment that says what it is for")
        if "#pragma once" not in text:
            found.append(f"{path}:1: a header has #pragma once")
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            if re.match(r"\s*using namespace\b", line):
                found.append(f"{path}:{number}: no 'using namespace' in a header")
    return found


def check_open_ends(files: dict[str, str]) -> list[str]:
    """Finds a to-do without the number of the issue that will do it."""
    mark = "TO" + "DO"
    return [
        f"{path}:{number}: {mark} without an issue number"
        for path, text in files.items()
        if path.endswith((*SOURCES, ".py", ".rs", ".go", ".md", ".cmake", ".txt"))
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(rf"\b{mark}\b(?! ?\(#\d+\))", line)
    ]


def check_places(files: dict[str, str]) -> list[str]:
    """Finds paths of one machine and hosts of package registries."""
    place = re.compile(r"(?<![\w.])(?:" + "|".join(map(re.escape, [*HOSTS, *PATHS])) + ")")
    return [
        f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]} belongs to one machine"
        for path, text in files.items()
        if not path.endswith(LOCK_FILES)
        for found in place.finditer(text)
    ]


CHECKS = [check_headers, check_open_ends, check_places]
