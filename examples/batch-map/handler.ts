/** One item of the batch. */
export default async function square({ input }: { input: { n: number } }): Promise<number> {
  return input.n ** 2;
}
