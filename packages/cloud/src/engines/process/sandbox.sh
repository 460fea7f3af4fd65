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

(
  exec 2>&5 5>&-
  mount -n -a -T "$1" && cd "$2" && pivot_root . . && umount -l . || exit 125
  shift 2
  exec "$@"
)
exit $?
