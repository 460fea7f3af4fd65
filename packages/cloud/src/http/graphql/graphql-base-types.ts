import type { GraphqlModule } from './graphql-module.ts';
import { COMPLIANCE_STANDARDS } from '../../domain/catalog/data-centers.ts';

/** The roots, and what several domains speak of. */
export const baseTypesModule: GraphqlModule = {
  sdl: `
    "Reads. A key needs the graphql scope for reading; some of it is open to everyone."
    type Query
    "Changes. A key needs the graphql scope for writing."
    type Mutation

    "An empty text is a value here. Elsewhere in an input it means that nothing was said."
    directive @mayBeEmpty on INPUT_FIELD_DEFINITION

    "An instant such as 2026-01-31T12:00:00Z"
    scalar DateTime
    "Any JSON value"
    scalar JSON
    "Always null: done"
    scalar Void

    enum Compliance { ${COMPLIANCE_STANDARDS.join(' ')} }

    type EnvironmentVariable { key: String value: String }
    input EnvironmentVariableInput { key: String value: String @mayBeEmpty }
  `,
};
