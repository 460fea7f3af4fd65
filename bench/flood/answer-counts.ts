/** How often which answer came. */
export class AnswerCounts {
  readonly #answers = new Map<string, number>();

  add(answer: string): void {
    this.#answers.set(answer, (this.#answers.get(answer) ?? 0) + 1);
  }

  toString(): string {
    return [...this.#answers].map(([answer, times]) => `${times} times ${answer}`).join(', ');
  }
}
