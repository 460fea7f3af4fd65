# Copies the output of an instance from its pipe, the standard input, to files. It does not depend on
# Berth: while Berth is down, the newest output is kept and the rest is only counted.
#
# Arguments: the folder of the files, the path of the pipe, the size of one file in kilobytes, and the
# number of files.
#
# A file is named N.LINES: its number, and how many lines the instance wrote before it. When one is full,
# the next begins and the oldest is deleted, so the disk holds a bounded amount. Berth deletes what it has
# read. The pipe is deleted when the output has ended; that needs no free disk space.
#
# There are two processes. The first holds the pipe open and starts the second, which writes. If that one is
# killed, the first starts it again: an instance whose pipe nobody has open would end with SIGPIPE.

if [ "$5" != write ]; then
  until /bin/sh "$0" "$@" write; do sleep 0.1; done
  exit
fi

cd "$1" || exec cat >/dev/null
pipe=$2
kilobytes=$3
files=$4
full=$((kilobytes * 1024))
size=0
# What an earlier writer left. Its last file may end in the middle of a line, which the next one goes on with.
names=$(ls | grep -E '^[0-9]+\.[0-9]+$' | sort -n | tr '\n' ' ')
set -- $names
if [ $# = 0 ]; then
  number=1
  lines=0
else
  shift $(($# - 1))
  number=$((${1%.*} + 1))
  lines=$((${1#*.} + $(wc -l <"$1")))
fi
names="$names$number.$lines"

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
    # Whoever writes without end waits here for a moment, so that copying takes little of the processor.
    sleep 0.1
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
