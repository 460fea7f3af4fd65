# Runs one instance in its own session, with its output in a pipe to output-writer.sh. Records the process
# ids at the start and the exit code at the end. It does not depend on Berth, which may restart meanwhile.
#
# Arguments: the instance's folder, its cgroup or "", the memory limit of one process in
# kilobytes or "", the path of setsid, and the command.
#
# The environment belongs to the instance. So variables of this script begin with berth_, and all
# its inputs are arguments.

# These signals are meant for the instance. The supervisor waits for its end.
trap : HUP INT QUIT TERM

# Only its user: a program opens its pipe again through /dev/stdout.
/usr/bin/mkfifo -m 600 "$1/pipe" || exit 1
[ -z "$BERTH_PIPE_OWNER" ] || chown "$BERTH_PIPE_OWNER" "$1/pipe"
# Not the environment of the instance: its processes are found by that, and it may hold secrets.
/usr/bin/env -i PATH=/usr/bin:/bin nice -n 10 /bin/sh "${0%/*}/output-writer.sh" "$1/output" "$1/pipe" 1024 8 \
  <"$1/pipe" >/dev/null 2>&1 &

(
  read -r berth_supervisor <"/proc/$$/stat"
  read -r berth_child <"/proc/self/stat"
  (umask 077; printf '%s\n%s\n' "$berth_supervisor" "$berth_child" >"$1/started")
  # An account's instance must not be able to start processes before it is in its cgroup. Otherwise
  # Berth moves it later: that takes the kernel some milliseconds.
  [ -z "$BERTH_JOIN_CGROUP" ] || [ -z "$2" ] || { echo 0 >"$2/cgroup.procs"; } 2>/dev/null
  # Waits until the output writer reads.
  exec >"$1/pipe" 2>&1
  # When memory runs out, the kernel should kill an instance, not Berth.
  { echo 500 >/proc/self/oom_score_adj; } 2>/dev/null
  [ -z "$3" ] || ulimit -d "$3"
  berth_setsid=$4
  shift 4
  exec "$berth_setsid" -- "$@"
)
berth_code=$?

# Kill the processes that the instance left running.
{ read -r berth_supervisor; read -r berth_child berth_rest; } <"$1/started"
kill -s KILL -- "-$berth_child"
[ -z "$2" ] || echo 1 >"$2/cgroup.kill"
# An instance that was killed before it opened its pipe leaves the output writer waiting for that.
[ ! -p "$1/pipe" ] || : <>"$1/pipe"

umask 077
echo "$berth_code" >"$1/exit"
