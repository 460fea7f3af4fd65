import { isMapping, type SettingType } from './setting-type.ts';

/** Requests in ten seconds and at the same time, for each account, endpoint and operation. */
export interface OperationLimit {
  per10s: number;
  concurrent: number;
}

const OFF = 'off';
const FORM = /^(\d{1,9})\/(\d{1,9})$/;
const LARGEST = 999_999_999;

/** `1000/200` is at most 1000 in ten seconds and 200 at the same time. The file may also name the two. */
export function operationLimitType(): SettingType<OperationLimit | typeof OFF> {
  const limit = (per10s: unknown, concurrent: unknown): OperationLimit | undefined =>
    isCount(per10s) && isCount(concurrent) ? { per10s, concurrent } : undefined;
  const fromText = (text: string): OperationLimit | typeof OFF | undefined => {
    if (text === OFF) return OFF;
    const [, per10s, concurrent] = FORM.exec(text) ?? [];
    return limit(Number(per10s), Number(concurrent));
  };
  return {
    allowed:
      'two whole numbers from 1 to 999999999 such as 1000/200 (in ten seconds, at the same time), or ' +
      'off; in the file also { per10s: 1000, concurrent: 200 }',
    fromText,
    fromFile: (value) => {
      if (typeof value === 'string') return fromText(value);
      // YAML reads a bare off as itself, and older readers as false.
      if (value === false) return OFF;
      return isMapping(value) && Object.keys(value).length === 2
        ? limit(value['per10s'], value['concurrent'])
        : undefined;
    },
    toYaml: (value) => (value === OFF ? OFF : `${value.per10s}/${value.concurrent}`),
  };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= LARGEST;
}
