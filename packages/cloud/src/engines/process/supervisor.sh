# Runs one instance: in a session of its own, with its output in a file. Writes down who runs
# when it starts, and how it ended. Whoever started this may come and go meanwhile.
#
# Arguments: the instance's folder, its cgroup or nothing, the most kilobytes of memory for one
# of its processes or nothing, the path of setsid, and then the command.
#
# The environment is the instance's. So variables have names that begin with berth_ here, and
# everything that is needed comes as an argument.

# The one that is to end by these is the instance; this waits for its end.
trap : HUP INT QUIT TERM

(
  read -r berth_supervisor <"/proc/$$/stat"
  read -r berth_child <"/proc/self/stat"
  printf '%s\n%s\n' "$berth_supervisor" "$berth_child" >"$1/started"
  # When memory runs out, the kernel shall take an instance and not Berth.
  { echo 500 >/proc/self/oom_score_adj; } 2>/dev/null
  [ -z "$3" ] || ulimit -d "$3"
  berth_setsid=$4
  shift 4
  exec "$berth_setsid" -- "$@"
) >>"$1/output" 2>&1
berth_code=$?

# What it left running ends with it.
{ read -r berth_supervisor; read -r berth_child berth_rest; } <"$1/started"
kill -s KILL -- "-$berth_child"
[ -z "$2" ] || echo 1 >"$2/cgroup.kill"

echo "$berth_code" >"$1/exit"
