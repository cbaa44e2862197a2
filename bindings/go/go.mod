module github.com/libwaste/waste/bindings/go

go 1.19
