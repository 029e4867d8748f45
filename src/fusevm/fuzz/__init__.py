"""Random programs, and the search for two engines that disagree on one."""
