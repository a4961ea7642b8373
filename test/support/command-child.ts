/** A command in a process of its own, as its script would run it: command-child.ts NAME ARGUMENTS... */
const [name, ...argv] = process.argv.slice(2);
const { main } = (await import(`../../ts/cli/${name}.ts`)) as { main(argv: string[]): Promise<number> };
process.exitCode = await main(argv);
