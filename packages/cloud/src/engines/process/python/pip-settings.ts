/** Settings of pip that change what is installed or from where, and their names in uv. */
const IN_UV: Readonly<Record<string, string>> = {
  'index-url': 'UV_DEFAULT_INDEX',
  'extra-index-url': 'UV_INDEX',
  'find-links': 'UV_FIND_LINKS',
  'no-index': 'UV_NO_INDEX',
  'trusted-host': 'UV_INSECURE_HOST',
  cert: 'SSL_CERT_FILE',
  timeout: 'UV_HTTP_TIMEOUT',
  'default-timeout': 'UV_HTTP_TIMEOUT',
};
/** In uv these are separated by commas; in pip, as all lists, by spaces. */
const WITH_COMMAS: ReadonlySet<string> = new Set(['UV_FIND_LINKS']);
/** Settings of pip that change neither what is installed nor from where. */
const HARMLESS: ReadonlySet<string> = new Set([
  'break-system-packages',
  'cache-dir',
  'disable-pip-version-check',
  'no-cache-dir',
  'no-color',
  'no-input',
  'no-python-version-warning',
  'no-warn-script-location',
  'progress-bar',
  'quiet',
  'require-virtualenv',
  'retries',
  'root-user-action',
  'verbose',
]);
/** `pip config list`: `global.index-url='https://…'`, `:env:.cert='…'`. */
const SETTING = /^(global|install|:env:)\.([\w-]+)=(['"])(.*)\3$/;
/** As pip: the best version of all indexes, not of the first one that has the package. */
const AS_PIP = { UV_INDEX_STRATEGY: 'unsafe-best-match' };

/**
 * What makes uv install as pip does with these settings, the output of `pip config list`. Undefined if one of
 * them has no counterpart in uv.
 */
export function uvVariables(pipSettings: readonly string[]): Record<string, string> | undefined {
  const variables: Record<string, string> = { ...AS_PIP };
  for (const line of pipSettings) {
    const [, , name = '', , value = ''] = SETTING.exec(line) ?? [];
    if (name === '' || HARMLESS.has(name)) continue;
    const inUv = IN_UV[name];
    if (inUv === undefined) return undefined;
    const words = value.split(/\\n|\s+/).filter((word) => word !== '');
    if (words.length > 0) variables[inUv] = words.join(WITH_COMMAS.has(inUv) ? ',' : ' ');
  }
  return variables;
}
