import { tsImport } from 'tsx/esm/api';

/**
 * Jest loads a global setup outside its module system: no name mapping, and TypeScript as CommonJS. So this
 * one file is JavaScript, and hands over to test-run.ts.
 */
export default async function globalSetup() {
  const { prepareTestRun } = await tsImport('./test-run.ts', import.meta.url);
  await prepareTestRun();
}
