# Runs a command in a pseudo-terminal and copies its input and output, for machines without script(1).
#
# Arguments: columns, rows and the command. The terminal's name is written to descriptor 3, so that the
# caller can resize it. The exit code is the command's, or 128 + n after signal n.
import fcntl
import os
import pty
import select
import struct
import sys
import termios

columns, rows, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.write(3, (os.ttyname(0) + "\n").encode())
    os.close(3)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write("%s: %s\r\n" % (command[0], error.strerror))
        os._exit(127)
os.close(3)

END_OF_INPUT = b"\x04"
sources = [0, terminal]
while terminal in sources:
    for source in select.select(sources, [], [])[0]:
        try:
            piece = os.read(source, 65536)
        except OSError:
            piece = b""
        if source == terminal:
            if not piece:
                sources.remove(terminal)
            while piece:
                piece = piece[os.write(1, piece):]
        else:
            if not piece:
                sources.remove(0)
                piece = END_OF_INPUT
            while piece:
                piece = piece[os.write(terminal, piece):]

status = os.waitpid(child, 0)[1]
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
