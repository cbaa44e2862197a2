// SPDX-License-Identifier: Apache-2.0
//
// Makes netstandard2.0 assemblies where no .NET SDK is: mcs compiles against Mono's mscorlib, and
// this moves every reference to where a netstandard2.0 build has it.
//
//   Retarget.exe move IN OUT          mscorlib, System, System.Core -> netstandard and the two
//                                     packages that hold the async interfaces and ValueTask
//   Retarget.exe stand-ins FACADE DIR assemblies with the names of those packages, for running
//                                     tests where NuGet is not: they forward to the runtime's types
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using Mono.Cecil;

static class Retarget
{
    private const string InterfacesName = "Microsoft.Bcl.AsyncInterfaces";
    private const string TasksName = "System.Threading.Tasks.Extensions";

    private static readonly byte[] Token = { 0xcc, 0x7b, 0x13, 0xff, 0xcd, 0x2d, 0xdd, 0x51 };
    private static readonly AssemblyNameReference Netstandard = Name("netstandard", "2.0.0.0");
    private static readonly AssemblyNameReference Interfaces = Name(InterfacesName, "8.0.0.0");
    private static readonly AssemblyNameReference Tasks = Name(TasksName, "4.2.0.1");

    private static readonly HashSet<string> FrameworkNames = new HashSet<string>
    {
        "mscorlib", "System", "System.Core", "System.IO.Compression",
        "System.IO.Compression.FileSystem", "System.Xml", "System.Xml.Linq", "netstandard",
    };

    private static readonly Dictionary<string, AssemblyNameReference> Elsewhere =
        new Dictionary<string, AssemblyNameReference>
    {
        { "System.IAsyncDisposable", Interfaces },
        { "System.Collections.Generic.IAsyncEnumerable`1", Interfaces },
        { "System.Collections.Generic.IAsyncEnumerator`1", Interfaces },
        { "System.Threading.Tasks.ValueTask", Tasks },
        { "System.Threading.Tasks.ValueTask`1", Tasks },
        { "System.Runtime.CompilerServices.ValueTaskAwaiter", Tasks },
        { "System.Runtime.CompilerServices.ValueTaskAwaiter`1", Tasks },
        { "System.Runtime.CompilerServices.ConfiguredValueTaskAwaitable", Tasks },
        { "System.Runtime.CompilerServices.ConfiguredValueTaskAwaitable`1", Tasks },
    };

    private static int Main(string[] arguments)
    {
        if (arguments.Length == 3 && arguments[0] == "move")
            Move(arguments[1], arguments[2]);
        else if (arguments.Length == 3 && arguments[0] == "stand-ins")
            MakeStandIns(arguments[1], arguments[2]);
        else
            return 2;
        return 0;
    }

    private static AssemblyNameReference Name(string name, string version)
    {
        return new AssemblyNameReference(name, new Version(version)) { PublicKeyToken = Token };
    }

    private static void Move(string source, string target)
    {
        ModuleDefinition module = ModuleDefinition.ReadModule(source);
        foreach (TypeReference type in module.GetTypeReferences().Where(IsOfFramework).ToList())
            type.Scope = Reference(module, PlaceOf(type));
        foreach (AssemblyNameReference old in module.AssemblyReferences.ToList())
            if (FrameworkNames.Contains(old.Name) && old.Version != Netstandard.Version)
                module.AssemblyReferences.Remove(old);
        module.Write(target);
    }

    private static bool IsOfFramework(TypeReference type)
    {
        return type.DeclaringType == null && FrameworkNames.Contains(type.Scope.Name);
    }

    private static AssemblyNameReference PlaceOf(TypeReference type)
    {
        return Elsewhere.TryGetValue(type.FullName, out AssemblyNameReference place)
            ? place
            : Netstandard;
    }

    private static AssemblyNameReference Reference(ModuleDefinition module,
                                                   AssemblyNameReference place)
    {
        AssemblyNameReference known = module.AssemblyReferences.FirstOrDefault(
            name => name.Name == place.Name && name.Version == place.Version);
        if (known == null)
            module.AssemblyReferences.Add(known = place);
        return known;
    }

    private static void MakeStandIns(string facade, string folder)
    {
        byte[] key = AssemblyDefinition.ReadAssembly(facade).Name.PublicKey;
        foreach (AssemblyNameReference place in new[] { Interfaces, Tasks })
        {
            var name = new AssemblyNameDefinition(place.Name, place.Version) { PublicKey = key };
            AssemblyDefinition made =
                AssemblyDefinition.CreateAssembly(name, place.Name, ModuleKind.Dll);
            AssemblyNameReference runtime = Name("netstandard", "2.1.0.0");
            made.MainModule.AssemblyReferences.Add(runtime);
            foreach (string type in Elsewhere.Where(pair => pair.Value == place)
                                             .Select(pair => pair.Key))
                made.MainModule.ExportedTypes.Add(Forward(made.MainModule, type, runtime));
            made.Write(Path.Combine(folder, place.Name + ".dll"));
        }
    }

    private static ExportedType Forward(ModuleDefinition module, string type,
                                        AssemblyNameReference runtime)
    {
        int dot = type.LastIndexOf('.');
        return new ExportedType(type.Substring(0, dot), type.Substring(dot + 1), module, runtime)
        {
            IsForwarder = true,
        };
    }
}
