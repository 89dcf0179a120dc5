"""The zygote and its supervisors: a bare interpreter that imports the lightest modules only."""
