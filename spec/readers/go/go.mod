module datasetrt

go 1.24
