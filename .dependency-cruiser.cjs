/**
 * Which folder may know which. docs/architecture.md says why; this file makes it hold.
 * A folder under src is entered through its index.ts only.
 */
const mayImport = {
  duration: [],
  config: ['duration'],
  observability: [],
  database: ['config', 'observability'],
  idempotency: ['database', 'duration', 'observability'],
  messaging: ['observability'],
  health: ['database', 'idempotency', 'messaging', 'observability', 'config'],
};
/** Platform folders; every other folder under src is a feature. */
const platform = Object.keys(mayImport);

const folderRules = Object.entries(mayImport).map(([folder, allowed]) => ({
  name: `${folder}-may-import-${allowed.join('-') || 'nothing-of-ours'}`,
  severity: 'error',
  from: { path: `^src/${folder}/` },
  to: { path: '^src/', pathNot: `^src/(${[folder, ...allowed].join('|')})/` },
}));

module.exports = {
  forbidden: [
    ...folderRules,
    {
      name: 'no-feature-imports-another',
      comment: 'Two features that share something share it through the platform.',
      severity: 'error',
      from: { path: `^src/(?!(?:${platform.join('|')})/)([^/]+)/` },
      to: {
        path: '^src/[^/]+/',
        pathNot: `^src/($1|${platform.filter((f) => f !== 'health').join('|')})/`,
      },
    },
    {
      name: 'folders-are-entered-through-their-index',
      severity: 'error',
      from: { path: '^src/([^/]+)/' },
      to: { path: '^src/([^/]+)/', pathNot: ['^src/$1/', '^src/[^/]+/index\\.ts$'] },
    },
    {
      name: 'the-top-enters-through-the-index',
      severity: 'error',
      from: { path: '^(src/[^/]+\\.ts|scripts|bench)' },
      to: { path: '^src/[^/]+/', pathNot: '^src/[^/]+/index\\.ts$' },
    },
    {
      name: 'folders-do-not-know-the-top',
      severity: 'error',
      from: { path: '^src/[^/]+/' },
      to: { path: '^src/[^/]+\\.ts$' },
    },
    {
      name: 'migrations-stand-alone',
      comment: 'A migration must do the same in ten years as today.',
      severity: 'error',
      from: { path: '^migrations/' },
      to: { path: '^(src|test|scripts|bench)/' },
    },
    {
      name: 'only-the-database-folder-knows-the-migrations',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/database/' },
      to: { path: '^migrations/' },
    },
    {
      name: 'production-code-knows-no-tests-or-scripts',
      severity: 'error',
      from: { path: '^(src|migrations)/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^(test|scripts|bench)/|\\.spec\\.ts$' },
    },
    {
      name: 'only-messaging-knows-rabbitmq',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/messaging/' },
      to: { path: 'node_modules/(amqplib|amqp-connection-manager)/' },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-undeclared-packages',
      severity: 'error',
      from: {},
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'undetermined'] },
    },
    {
      name: 'no-dev-dependencies-in-production-code',
      severity: 'error',
      from: { path: '^(src|migrations)/', pathNot: '\\.spec\\.ts$' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json'],
    },
  },
};
