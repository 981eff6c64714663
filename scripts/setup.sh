#!/usr/bin/env bash
# Makes a bare Debian or Ubuntu machine ready: system packages, .venv with the pinned requirements, kerf installed
# into it. Each step is skipped when there is nothing to do, so it may be run before every build and test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

system_packages=(
  build-essential ccache cmake ninja-build python3-dev python3-venv
  llvm-19-dev zlib1g-dev libzstd-dev clang-format-19
  libfmt-dev doctest-dev libcli11-dev nlohmann-json3-dev libxxhash-dev
)

missing_packages() {
  local package
  for package in "${system_packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

install_system_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "setup: not a Debian system; these packages must be there under their local names:" >&2
    echo "  ${system_packages[*]}" >&2
    return
  fi
  local missing root=()
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
      root=(sudo)
    else
      echo "setup: system packages are missing and this user may not install them. Run as root:" >&2
      echo "  apt-get update && apt-get install -y ${missing[*]}" >&2
      exit 1
    fi
  fi
  echo "setup: installing ${missing[*]}"
  local install=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends)
  # The package lists may be absent or too old for what they name: refresh them only then.
  "${install[@]}" "${missing[@]}" </dev/null || {
    "${root[@]}" apt-get update -q
    "${install[@]}" "${missing[@]}" </dev/null
  }
}

# The first of these that is 3.11 or 3.12 and has the headers that the bindings compile against.
find_python() {
  local candidate
  for candidate in python3 python3.12 python3.11 /usr/bin/python3; do
    if "$candidate" - 2>/dev/null <<'PYTHON'
import ensurepip, os, sys, sysconfig
headers = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 12) and os.path.exists(headers)))
PYTHON
    then
      echo "$candidate"
      return
    fi
  done
  echo "setup: no Python 3.11 or 3.12 with headers and venv; install python3-dev and python3-venv" >&2
  return 1
}

install_requirements() {
  local stamp=.venv/requirements.sha256
  if [ ! -x .venv/bin/python ]; then
    local python
    python=$(find_python)
    "$python" -m venv .venv
  fi
  local wanted
  wanted=$(cat requirements-dev.txt requirements-no-deps.txt | sha256sum)
  [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
  .venv/bin/python -m pip install -q -r requirements-dev.txt
  .venv/bin/python -m pip install -q --no-deps -r requirements-no-deps.txt
  # A torchvision from before would shadow nothing but breaks the import of timm when it does not fit torch.
  .venv/bin/python -m pip uninstall -q -y torchvision 2>/dev/null
  echo "$wanted" >"$stamp"
}

install_system_packages
install_requirements
scripts/install_kerf.sh
