/** A fenced block of code on a page. */
export interface CodeBlock {
  language: string;
  /** The file that the reader saves it as, where its title is a file name: ```js [hello/server.mjs] */
  file?: string;
  text: string;
}

const FENCE = /^( *)```(\w*)(?: \[([^\]\n]*)\])?[^\n]*\n([\s\S]*?)^ *```$/gm;

/** The blocks of a page, in order. */
export function codeBlocks(markdown: string): CodeBlock[] {
  return [...markdown.matchAll(FENCE)].map(([, indent = '', language = '', title = '', text = '']) => ({
    language,
    text: text.replace(new RegExp(`^${indent}`, 'gm'), ''),
    ...(title.includes('.') && { file: title }),
  }));
}

/** Languages of blocks that show something and are not typed by anyone. */
export const SHOWN = ['text', 'http'];

/**
 * What a page starts in the background ends with it. An answer with an error ends the script, unless the page
 * shows its status. `npx` takes a second to find what is in node_modules/.bin; docs/quick-start.md tries it.
 * What runs until it is ended, readers start in another terminal: here it runs beside the page until the next
 * one starts, and the page goes on when it is up.
 */
const PROLOGUE = `set -euo pipefail
trap 'stop_beside; kill $(jobs -p) 2>/dev/null || true' EXIT
curl() { case "$*" in *http_code* | *-sf*) command curl "$@" ;; *) command curl --fail-with-body "$@" ;; esac; }
BESIDE=
stop_beside() {
  [ -n "$BESIDE" ] || return 0
  kill -- "-$BESIDE" 2>/dev/null || true
  while kill -0 -- "-$BESIDE" 2>/dev/null; do sleep 0.1; done
  BESIDE=
}
beside() {
  stop_beside
  setsid "$@" >beside.log 2>&1 &
  BESIDE=$!
  until grep -qE '^berth is up at|Server is ready to receive' beside.log; do
    if ! kill -0 "$BESIDE" 2>/dev/null; then cat beside.log >&2; exit 1; fi
    sleep 0.1
  done
}
npm() {
  if [ "$1" = start ]; then BERTH_PORT=$OWN_PORT BERTH_DATA=$OWN_DATA beside npm "$@"; else command npm "$@"; fi
}
npx() {
  if [ "$1 \${2-}" = 'berth up' ]; then BERTH_PORT=$OWN_PORT beside "node_modules/.bin/$@"
  elif [ "$PAGE" = docs/quick-start.md ]; then command npx "$@"
  else "node_modules/.bin/$@"; fi
}
prometheus() { beside prometheus "$@" --storage.tsdb.path=prometheus-data "--web.listen-address=127.0.0.1:$OWN_PORT"; }
git() { rm -rf "\${@: -1}"; command git "$@" && as_installed "\${@: -1}"; }
as_installed() { # after npm install
  for folder in node_modules packages/cloud/node_modules packages/console/dist; do
    if [ -d "$REPOSITORY/$folder" ]; then ln -s "$REPOSITORY/$folder" "$1/$folder"; fi
  done
  touch -d 2000-01-01 "$1/package-lock.json"
}
`;

/**
 * One shell script that runs a page as a reader would: files are saved and shell blocks run where they are,
 * in one shell. The other blocks of a language are one program, which runs where the last of them is.
 * `commands` says how a program is read from standard input; a language without one is left out.
 */
export function pageScript(blocks: readonly CodeBlock[], commands: Record<string, string>): string {
  const programs = new Map(
    Object.keys(commands).map((language) => [
      language,
      blocks.filter((block) => block.language === language && block.file === undefined),
    ]),
  );
  const parts = blocks.map((block) => {
    if (block.file !== undefined)
      return `mkdir -p "$(dirname '${block.file}')"\n${withInput(`cat >'${block.file}'`, block.text)}`;
    if (block.language === 'sh') return block.text;
    const program = programs.get(block.language);
    if (program?.at(-1) !== block) return '';
    return withInput(commands[block.language] ?? '', program.map(({ text }) => text).join('\n'));
  });
  return [PROLOGUE, ...parts].join('\n');
}

function withInput(command: string, text: string): string {
  return `${command} <<'END_OF_BLOCK'\n${text}END_OF_BLOCK\n`;
}

/** The same commands, in the background until they have printed something: they would follow for ever. */
export function untilItPrints(text: string): string {
  return `set -m # so that the job is a process group, which ends as a whole
{\n${text}} >followed.txt &
set +m
until [ -s followed.txt ]; do sleep 0.1; done
kill -- -$!
wait $! || true\n`;
}
