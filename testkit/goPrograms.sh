# What the scripts share that build programs in Go for tests; sourced by them.

# The build must not depend on the caller's flags, workspace or C compiler.
export GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0

# Unoptimized and with nothing for debuggers, which takes a third less processor time. The same for all programs: what they
# have in common is compiled once.
go_flags=(-trimpath -buildvcs=false -gcflags='all=-N -l -dwarf=false' -ldflags='-s -w')

# go_program MODULE OUTPUT ARGUMENTS...: builds one.
go_program() {
  local module=$1 output=$2
  shift 2
  go -C "$module" build "${go_flags[@]}" -o "$output" "$@"
}

# folder_for_one DIR: makes the folder, and waits until nobody else builds into it: two test runs may find a program missing
# at the same moment. $dir is its absolute path.
folder_for_one() {
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  if command -v flock > /dev/null; then
    exec 9> "$dir/lock"
    flock 9
  fi
}

# exit_if_built WHAT FILES...: ends the script if these files made what $dir has.
exit_if_built() {
  local what=$1
  shift
  stamp="$(uname -sm) $(cat "${BASH_SOURCE[0]}" "$@" | sha256sum)"
  if [[ -f $dir/stamp && $(< "$dir/stamp") == "$stamp" ]]; then
    echo "$what: up to date in $dir"
    exit 0
  fi
  rm -f "$dir/stamp"
}

# is_built WHAT: called last, so that an interrupted build is not taken for a finished one.
is_built() {
  echo "$stamp" > "$dir/stamp"
  echo "$1: ready in $dir after $SECONDS s"
}
