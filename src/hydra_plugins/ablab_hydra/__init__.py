"""The launchers and sweepers that Hydra finds: ablab's studies behind `-m`."""
