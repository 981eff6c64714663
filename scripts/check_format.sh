#!/usr/bin/env bash
# Checks the layout of every tracked C++ and Python file, and lints the Python. Changes nothing.
#   scripts/check_format.sh [ROOT]
# To mend: clang-format-19 -i FILE, .venv/bin/ruff format, .venv/bin/ruff check --fix.
set -uo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "${1:-$home}" || exit 1
ruff=$home/.venv/bin/ruff
status=0

# Files that are deleted but not yet committed as such are not there to check.
tracked() {
  local file
  while IFS= read -r -d '' file; do
    [ ! -f "$file" ] || printf '%s\0' "$file"
  done < <(git ls-files -z -- "$@")
}

tracked '*.cpp' '*.h' | xargs -0 -r clang-format-19 --dry-run --Werror || status=1
tracked '*.py' | xargs -0 -r "$ruff" check -q --force-exclude || status=1
tracked '*.py' | xargs -0 -r "$ruff" format -q --check --force-exclude || status=1
echo "format: $(tracked '*.cpp' '*.h' '*.py' | tr -cd '\0' | wc -c) files, $([ $status = 0 ] && echo clean || echo not clean)"
exit $status
