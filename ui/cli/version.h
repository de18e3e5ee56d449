/** `hetviz --version`: the version, or with --json everything that a report of a fault needs. */
#ifndef HV_UI_CLI_VERSION_H
#define HV_UI_CLI_VERSION_H

/**
 * Prints the version; with `--json` also the commit, compiler, flags, versions of libraries,
 * features, version of the judge and data folder. `argc` counts what follows `--version`;
 * `terminal` is the name and version of the terminal library. Returns the exit code.
 */
int hv_cli_version(int argc, char **argv, const char *terminal);

#endif
