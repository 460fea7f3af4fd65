import { useMemo } from 'react';
import { CopyButton } from '../../components/copy.tsx';
import { Segmented } from '../../components/form.tsx';
import { Card } from '../../components/page.tsx';
import { useUrlChoice } from '../../components/url-state.ts';
import type { Language } from './snippets.ts';

const LANGUAGE_NAMES = ['curl', 'python', 'typescript'] as const satisfies Language[];

/** A call of the playground in a few languages. */
export function ProgramCard({ program }: { program: (language: Language) => string }) {
  const [language, setLanguage] = useUrlChoice('language', LANGUAGE_NAMES);
  const text = useMemo(() => program(language), [language, program]);
  return (
    <Card
      title="The same as a program"
      actions={
        <>
          <Segmented
            label="Language"
            value={language}
            options={[
              ['curl', 'curl'],
              ['python', 'Python'],
              ['typescript', 'TypeScript'],
            ]}
            onChange={setLanguage}
          />
          <CopyButton text={text} label="Copy the program" />
        </>
      }
    >
      <pre tabIndex={0} aria-label="Program">
        {text}
      </pre>
    </Card>
  );
}
