# Copies the output of an instance from its pipe, the standard input, to files. It does not depend on
# Berth: while Berth is down, the newest output is kept and the rest is only counted.
#
# Arguments: the folder of the files, the path of the pipe, the size of one file in kilobytes, and the
# number of files.
#
# A file is named N.LINES: its number, and how many lines the instance wrote before it. When one is full,
# the next begins and the oldest is deleted, so the disk holds a bounded amount. Berth deletes what it has
# read. The pipe is deleted when the output has ended; that needs no free disk space.

cd "$1" || exec cat >/dev/null
pipe=$2
kilobytes=$3
files=$4
full=$((kilobytes * 1024))
number=1
lines=0
size=0
names=1.0

while :; do
  file=$number.$lines
  # Small blocks: dd counts reads, and a line that is written by itself is one read.
  dd bs=1024 count="$kilobytes" >>"$file" 2>/dev/null
  failed=$?
  before=$size
  size=$(wc -c 2>/dev/null <"$file" || echo "$before")
  if [ "$failed" = 0 ]; then
    # Nothing was left to read: every process that had the pipe open has ended.
    [ "$size" != "$before" ] || break
    [ "$size" -ge "$full" ] || continue
    # Whoever writes without end waits here for a moment.
    sleep 0.01
  fi
  lines=$((lines + $(wc -l 2>/dev/null <"$file" || echo 0)))
  if [ "$failed" != 0 ]; then
    # The disk is full, and the instance must not wait for it: what it writes now is only counted.
    set -- $(dd bs=1024 count=1024 2>/dev/null | wc -lc)
    [ "$2" != 0 ] || break
    lines=$((lines + $1))
    sleep 0.01
  fi
  number=$((number + 1))
  size=0
  names="$names $number.$lines"
  set -- $names
  if [ $# -gt "$files" ]; then
    rm -f "$1"
    shift
    names=$*
  fi
done

rm -f "$pipe"
