import type { ErrorObject } from 'ajv/dist/2020.js';

/** Something that the validator complains of. */
export type ReducedAjvError = Pick<
  ErrorObject,
  'instancePath' | 'schemaPath' | 'keyword' | 'propertyName'
> & {
  params: Record<string, unknown>;
  /** Null would have been accepted too. */
  orNull?: boolean;
};

/**
 * Reduces what the validator reports to what has to be changed. Where alternatives were tried
 * (anyOf, oneOf), the validator lists the complaints of every alternative and then the failure
 * of the choice itself; the complaints of one alternative are enough.
 */
export function reduceAjvErrors(errors: ErrorObject[]): ReducedAjvError[] {
  const settled: ReducedAjvError[] = [];
  for (const error of errors) {
    if (error.keyword === 'anyOf' || error.keyword === 'oneOf') {
      let start = settled.length;
      while (start > 0 && isInside(settled[start - 1]!, error)) start -= 1;
      settled.push(...chooseAlternative(error, settled.splice(start)));
    } else if (error.keyword !== 'if' && error.keyword !== 'propertyNames') {
      settled.push(error);
    }
  }
  return withoutRepeatedTypes(settled);
}

function isInside(problem: ReducedAjvError, choice: ReducedAjvError): boolean {
  return (
    problem.schemaPath.startsWith(`${choice.schemaPath}/`) &&
    (problem.instancePath === choice.instancePath ||
      problem.instancePath.startsWith(`${choice.instancePath}/`))
  );
}

/**
 * The complaints of the alternative that was most likely meant, or one complaint that speaks for all of them.
 */
function chooseAlternative(choice: ReducedAjvError, problems: ReducedAjvError[]): ReducedAjvError[] {
  if (Array.isArray(choice.params['passingSchemas']) || problems.length === 0) return [choice];
  const branches = Map.groupBy(
    problems,
    (problem) => problem.schemaPath.slice(choice.schemaPath.length + 1).split('/', 1)[0]!,
  );
  const all = [...branches.values()].map(withoutRepeatedTypes);
  const real = all.filter(
    (branch) =>
      !branch.some(
        (problem) => problem.instancePath === choice.instancePath && problem.params['type'] === 'null',
      ),
  );
  if (real.length === 0) return all[0]!;
  const orNull = real.length < all.length;
  const kept =
    (real.length > 1 ? mergeAlternatives(choice, real) : undefined) ??
    real.toSorted((a, b) => distance(a, choice) - distance(b, choice))[0]!;
  return kept.map((problem) =>
    orNull && problem.instancePath === choice.instancePath ? { ...problem, orNull } : problem,
  );
}

/** Where all alternatives complain of the same thing, it is reported once. */
function mergeAlternatives(
  choice: ReducedAjvError,
  branches: ReducedAjvError[][],
): ReducedAjvError[] | undefined {
  const types = branches.map((branch) =>
    branch.find((problem) => problem.keyword === 'type' && problem.instancePath === choice.instancePath),
  );
  if (types.every((problem) => problem !== undefined))
    return [
      {
        ...types[0]!,
        params: { type: types.flatMap((problem) => problem.params['type'] as string | string[]) },
      },
    ];

  const choices = branches.map((branch) => branch.find((problem) => allowedBy(problem) !== undefined));
  if (
    choices.every((problem) => problem !== undefined && problem.instancePath === choices[0]!.instancePath)
  ) {
    return [
      {
        ...choices[0]!,
        keyword: 'enum',
        params: { allowedValues: [...new Set(choices.flatMap((problem) => allowedBy(problem!)))] },
      },
    ];
  }

  const missing = branches.map((branch) =>
    branch.length === 1 && branch[0]!.keyword === 'required' ? branch[0] : undefined,
  );
  if (
    missing.every((problem) => problem !== undefined && problem.instancePath === missing[0]!.instancePath)
  ) {
    return [
      {
        ...missing[0]!,
        params: { missingProperty: missing.map((problem) => problem!.params['missingProperty']) },
      },
    ];
  }
  return undefined;
}

function allowedBy(problem: ReducedAjvError): unknown[] | undefined {
  if (problem.keyword === 'enum') return problem.params['allowedValues'] as unknown[];
  return problem.keyword === 'const' ? [problem.params['allowedValue']] : undefined;
}

/**
 * How far a value is from an alternative: the wrong type is furthest, then a wrong tag, then the number of
 * complaints.
 */
function distance(branch: ReducedAjvError[], choice: ReducedAjvError): number {
  const wrongType = branch.some(
    (problem) => problem.keyword === 'type' && problem.instancePath === choice.instancePath,
  );
  const wrongTag = branch.some((problem) => allowedBy(problem) !== undefined);
  return (wrongType ? 1e9 : 0) + (wrongTag ? 1e6 : 0) + branch.length;
}

/** A value outside a list of choices needs no second line about its type. */
function withoutRepeatedTypes(problems: ReducedAjvError[]): ReducedAjvError[] {
  const location = (problem: ReducedAjvError): string =>
    `${problem.instancePath}\n${problem.schemaPath.slice(0, problem.schemaPath.lastIndexOf('/'))}`;
  const chosen = new Set(problems.filter((problem) => allowedBy(problem) !== undefined).map(location));
  return problems.filter((problem) => problem.keyword !== 'type' || !chosen.has(location(problem)));
}
