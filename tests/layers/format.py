# SPDX-License-Identifier: BSL-1.0
"""Every file is laid out as clang-format 14 (Debian 12) does it; other versions differ in details,
so without that version this is skipped.

    format.py SOURCE_DIR
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
FOLDERS = ("include", "models", "collectives", "lib", "bench", "tests", "examples")

tool = shutil.which("clang-format-14")
if not tool:
    print("SKIPPED: clang-format-14 is not installed")
    sys.exit(77)
files = [str(p) for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*"))
         if p.suffix in (".hpp", ".cpp")]
done = subprocess.run([tool, "--dry-run", "--Werror", *files], capture_output=True, text=True)
print(f"{len(files)} files looked at")
print("\n".join(line for line in done.stderr.splitlines() if "error:" in line))
sys.exit(done.returncode)
