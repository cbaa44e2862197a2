# SPDX-License-Identifier: Apache-2.0
#
# need_packages NAME...: makes sure that Debian packages are there. What is installed already is
# found without the network; what is missing is installed by root, and named to anybody else. To be
# sourced by scripts that run under `set -e`.

# build_packages is what the library, the program and the C++ tests are built with.
readonly build_packages=(cmake ninja-build ccache g++ libboost-test-dev nlohmann-json3-dev
  libcli11-dev libedit-dev)

# arm64_packages builds programs for aarch64; arm64_launcher runs them.
readonly arm64_packages=(g++-aarch64-linux-gnu qemu-user)
readonly arm64_launcher=(qemu-aarch64 -L /usr/aarch64-linux-gnu)

need_packages() {
  local missing=() name
  if ! command -v dpkg-query > /dev/null; then
    echo "This is no Debian system: the names of what is needed there are: $*" >&2
    return 0
  fi
  for name in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2> /dev/null) == installed ]] ||
      missing+=("$name")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $(id -u) -ne 0 ]]; then
    echo "Missing packages. Install them and run this again:" >&2
    echo "  sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    return 1
  fi
  echo "Installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install --no-install-recommends -y "${missing[@]}" > /dev/null
}
