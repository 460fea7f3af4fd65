"""The two tones of each telephone key, in hertz."""

ROWS = (697, 770, 852, 941)
COLUMNS = (1209, 1336, 1477, 1633)
KEYS = "123A456B789C*0#D"
