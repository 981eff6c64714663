#!/usr/bin/env bash
# Builds the core and the bindings and puts them into .venv (make dev). The install is editable: Python files are
# used where they are, and the extension is built in build/python, incrementally after the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=.venv/bin/python
stamp=.venv/kerf.sha256
# What an incremental build does not notice: the package's metadata, its build options, and a moved checkout.
wanted=$({ cat pyproject.toml; pwd; } | sha256sum)

if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && [ -f build/python/build.ninja ]; then
  cmake --build build/python
  cmake --install build/python --prefix "$($python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')" \
    >build/python/install.log
else
  echo "kerf: building core and bindings (minutes the first time)"
  rm -f "$stamp"
  # The compiler by the name CMake finds by itself, so that ccache shares objects with the test build.
  CXX=${CXX:-c++} $python -m pip install -q --no-build-isolation --no-deps -C cmake.define.KERF_WERROR=ON -e .
  echo "$wanted" >"$stamp"
fi
