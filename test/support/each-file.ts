import { failOnOpenDatabases } from '#test/support/database.ts';

failOnOpenDatabases();
