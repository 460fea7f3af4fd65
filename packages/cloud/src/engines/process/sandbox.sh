# The first process of an instance in a process namespace of its own. Mounts what the instance may
# see, makes that its root, and runs the command as the account's user. When this process ends, the
# kernel ends all others of the namespace.
#
# Arguments: the list of mounts, the folder that becomes the root, and the command, which gives up
# the rights of root first.

# These signals are meant for the command. This process waits for its end.
trap : HUP INT QUIT TERM

# Only the command writes to the log: a shell reports which signal ended it.
exec 5>&2 2>/dev/null

# Counts the mounts outside the folder. It starts no program: a mount outside may have replaced any.
count_outside() {
  outside=0
  while read -r id parent device source point rest; do
    case $point in *\\*) point=$(printf %b "$point") ;; esac
    case $point in "$1" | "$1"/*) ;; *) outside=$((outside + 1)) ;; esac
  done
}

(
  # Twice the list of this namespace's mounts, as it is when it is read.
  exec 2>&5 5>&- 6</proc/self/mountinfo 7</proc/self/mountinfo
  cd -P "$2" || exit 125
  view=$PWD
  count_outside "$view" <&6
  before=$outside
  mount -n -a -T "$1" || exit 125
  count_outside "$view" <&7
  if [ "$outside" -ne "$before" ]; then
    echo 'not started: one of the mounts led out of the folder of the instance' >&2
    exit 125
  fi
  exec 6<&- 7<&-
  cd "$view" && pivot_root . . && umount -l . || exit 125
  shift 2
  exec "$@"
)
exit $?
