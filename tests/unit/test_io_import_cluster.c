/* Imports that describe machines: nvidia-smi, NCCL, Slurm, Kubernetes, prices. Each text has the
 * pitfall that its format is known for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/import_bench.h"

static const char smi_xml[] =
    "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n"
    "<nvidia_smi_log><driver_version>550</driver_version><attached_gpus>3</attached_gpus>\n"
    "<gpu id=\"0\"><product_name>NVIDIA A100-SXM4-80GB</product_name>\n"
    "<mig_devices><mig_device><fb_memory_usage><total>9728 MiB</total></fb_memory_usage>"
    "</mig_device></mig_devices>\n"
    "<pci><pci_gpu_link_info><pcie_gen><max_link_gen>3</max_link_gen></pcie_gen>"
    "<link_widths><max_link_width>16x</max_link_width></link_widths></pci_gpu_link_info></pci>\n"
    "<fb_memory_usage><total>81920 MiB</total></fb_memory_usage></gpu>\n"
    "<gpu id=\"1\"><product_name>Foo 9000</product_name>"
    "<product_architecture>Turing</product_architecture>"
    "<fb_memory_usage><total>8192 MiB</total></fb_memory_usage></gpu></nvidia_smi_log>\n";

static void memory_is_the_cards_not_the_slices(void **state)
{
    (void)state;
    struct import x = import_one("nvidia_smi_xml", smi_xml);
    import_word(&x, "nodes[0].devices[0].device", "A100-SXM-80GB-pcie16");
    import_number(&x, "devices.A100-SXM-80GB-pcie16.pcie_GBps", 15.76);
    import_absent(&x, "devices.A100-SXM-80GB-pcie16.memory_GiB");
    import_says(&x, HV_IMPORT_IGNORED, 5, "1 MIG slices");
    import_says(&x, HV_IMPORT_GUESSED, 0, "3 cards are attached, 2 are listed");
    /* a card that the catalogue lacks keeps its memory, and takes the rest from its generation */
    import_word(&x, "nodes[0].devices[1].device", "Foo-9000");
    import_number(&x, "devices.Foo-9000.memory_GiB", 8);
    import_word(&x, "devices.Foo-9000.base", "T4-16GB");
    import_says(&x, HV_IMPORT_GUESSED, 0, "\"Foo 9000\" is not in the catalogue");
    import_word(&x, "x-import.raw.driver_version", "550");
    import_free(&x);
}

static void csv_with_and_without_header(void **state)
{
    (void)state;
    struct import x =
        import_one("nvidia_smi_csv",
                   "index, name, memory.free [MiB], memory.used [MiB], pstate\r\n"
                   "0, NVIDIA L4, 20000 MiB, 3034 MiB, P0\r\n1, NVIDIA L4, [N/A], 1, P0\r\n");
    import_word(&x, "nodes[0].device", "L4-24GB");
    import_number(&x, "nodes[0].devices", 2);
    import_says(&x, HV_IMPORT_GUESSED, 2, "used and free");
    import_free(&x);
    x = import_one("nvidia_smi_csv", "NVIDIA GeForce RTX 3090, 24576, 350.00\n");
    import_word(&x, "nodes[0].device", "RTX3090-24GB");
    import_says(&x, HV_IMPORT_GUESSED, 1, "no header");
    import_free(&x);
    /* PowerShell writes UTF-16 */
    static const char wide[] = "\xFF\xFEn\0a\0m\0e\0\n\0T\0e\0s\0l\0a\0 \0T\0004\0\n";
    struct hv_import *im = hv_import_new(&import_devices);
    assert_int_equal(hv_import_text(im, NULL, "f", wide, sizeof wide, NULL), HV_OK);
    assert_int_equal(hv_import_finish(im, NULL), HV_OK);
    hv_import_free(im);
}

static void lists_and_links_of_cards(void **state)
{
    (void)state;
    struct import x = import_one("nvidia_smi_L", "GPU 0: NVIDIA H200 (UUID: GPU-0)\n"
                                                 "  MIG 1g.18gb Device 0: (UUID: MIG-0)\n");
    import_word(&x, "nodes[0].device", "H200-SXM-141GB");
    import_free(&x);
    x = import_one("nvidia_smi_nvlink",
                   "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n\t Link 0: 26.562 GB/s\n"
                   "\t Link 1: 26.562 GB/s\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"
                   "\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n");
    import_number(&x, "nodes[0].intra.bandwidth_GBps", 2 * 26.562);
    import_free(&x);
    x = import_one(
        "nvidia_smi_q_text",
        "==============NVSMI LOG==============\n\nGPU 00000000:83:00.0\n"
        "    Product Name                   : NVIDIA H200\n    PCI\n        GPU Link Info\n"
        "            PCIe Generation\n                Max                : 4\n"
        "            Link Width\n                Max                : 16x\n"
        "    FB Memory Usage\n        Total                      : 143771 MiB\n"
        "    BAR1 Memory Usage\n        Total                      : 262144 MiB\n");
    import_number(&x, "devices.H200-SXM-141GB-pcie32.pcie_GBps", 31.5);
    import_free(&x);
}

/* Two pairs of bridges, NIC rows short of columns, colour codes: islands beside each other. */
static void topology_tells_islands_switches_and_nics(void **state)
{
    (void)state;
    const char *const pairs[] = {
        "GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-0)\nGPU 1: NVIDIA GeForce RTX 3090 (UUID: "
        "GPU-1)\n"
        "GPU 2: NVIDIA GeForce RTX 3090 (UUID: GPU-2)\nGPU 3: NVIDIA GeForce RTX 3090 (UUID: "
        "GPU-3)\n",
        "\t\033[4mGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\tNUMA Affinity\033[0m\n"
        "GPU0\t X \tPHB\tNV4\tSYS\tNODE\t0-11\t0\nGPU1\tPHB\t X \tSYS\tNV4\tSYS\t0-11\t0\n"
        "GPU2\tNV4\tSYS\t X \tPHB\tSYS\nGPU3\tSYS\tNV4\tPHB\t X "
        "\tSYS\nmlx5_0\tNODE\tSYS\tSYS\tSYS\t X \n",
        NULL};
    struct import x = import_texts(pairs);
    assert_int_equal(x.st, HV_OK);
    import_number(&x, "nodes[0].devices", 4);
    import_word(&x, "nodes[0].intra.kind", "pcie");
    import_word(&x, "nodes[0].intra.groups[1].devices", "2-3");
    /* GA102: 4 links of 14.0625 GB/s */
    import_number(&x, "nodes[0].intra.groups[0].bandwidth_GBps", 56.25);
    import_says(&x, HV_IMPORT_GUESSED, 0, "order was changed");
    import_free(&x);
    /* 12 links to each of 3 others are more than a card has: a switch, 12 x 25 GB/s */
    x = import_one("nvidia_smi_topo", "      GPU0  GPU1  GPU2  CPU Affinity\n"
                                      "GPU0   X    NV12  NV12  0-23\nGPU1  NV12   X    NV12  0-23\n"
                                      "GPU2  NV12  NV12   X    0-23\n");
    import_word(&x, "nodes[0].intra.kind", "nvswitch");
    import_number(&x, "nodes[0].intra.bandwidth_GBps", 300);
    import_word(&x, "nodes[0].device", "A100-SXM-80GB");
    import_free(&x);
    import_refused("ERROR: Option -m is missing its value. Please run 'nvidia-smi -h' for help.\n",
                   76, HV_ENO, "Option -m");
}

static void nccl_topology(void **state)
{
    (void)state;
    struct import x = import_one(
        "nccl_topo_xml",
        "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"s\" class=\"0x060400\">"
        "<pci busid=\"a\" class=\"0x030200\" device=\"0x20b2\" link_speed=\"\" link_width=\"0\">"
        "<gpu dev=\"0\" sm=\"80\"><nvlink target=\"b\" count=\"12\" "
        "tclass=\"0x030200\"/></gpu></pci>"
        "<pci busid=\"b\" class=\"0x030200\" device=\"0x20b2\"><gpu dev=\"1\" sm=\"80\">"
        "<nvlink target=\"a\" count=\"12\" tclass=\"0x030200\"/></gpu></pci>"
        "<nic><net name=\"mlx5_0\" speed=\"200000\"/></nic></pci></cpu></system>");
    import_word(&x, "nodes[0].device", "A100-SXM-80GB");
    import_number(&x, "nodes[0].devices", 2);
    import_number(&x, "nodes[0].intra.bandwidth_GBps", 300);
    import_number(&x, "nodes[0].nic.bandwidth_GBps", 25); /* Mbit/s */
    import_free(&x);
}

static void slurm_text(void **state)
{
    (void)state;
    struct import x = import_one(
        "slurm", "NodeName=a001 CPUTot=64 ActiveFeatures=ib,h100 Gres=gpu:8 State=IDLE+DRAIN\n"
                 "   OS=Linux 5 #1 SMP\n   Reason=bad fan Gres=none [root@x]\n"
                 "NodeName=a[002-004,7] Gres=gpu:h100:8(S:0-1),nsight:no_consume:1 State=MIXED\n");
    import_number(&x, "nodes[0].devices", 8);
    import_word(&x, "nodes[0].device", "H100-SXM-80GB"); /* by its feature */
    import_word(&x, "nodes[0].state", "drain");
    import_number(&x, "nodes[1].count", 4);
    import_word(&x, "nodes[1].x-nodes", "a002,a003,a004,a7");
    import_free(&x);
    x = import_one("slurm", "NODELIST   GRES                        STATE\n"
                            "g1         gpu:a100:4(S:0-3)           idle\n"
                            "g1         gpu:a100:4(S:0-3)           idle\n"
                            "c1         (null)                      idle\n"
                            "g2         gpu:h100:2,gpu:h200:4       down*\n");
    import_number(&x, "nodes[0].count", 1);
    import_word(&x, "nodes[1].devices[1].device", "H200-SXM-141GB");
    import_word(&x, "nodes[1].state", "drain");
    import_absent(&x, "nodes[2]");
    import_says(&x, HV_IMPORT_IGNORED, 0, "1 nodes without an accelerator");
    import_free(&x);
    /* columns of fixed width that are full: what cannot be parted is said */
    x = import_one("slurm",
                   "28o0740r730  idle gpu:tesla_v100:2\n28o0741r730  idle gpu:tesla_v100:2\n");
    import_says(&x, HV_IMPORT_GUESSED, 1, "\"28o0740r730\" looks like columns without a space");
    import_free(&x);
    x = import_one("slurm", "2u4n01  idle gpu:tesla_v100:2\nr730x1a2c3  idle gpu:tesla_v100:2\n");
    assert_false(import_has(&x, "without a space between them"));
    import_free(&x);
    /* no header; MIG slices are kinds of their own: 3g of an A100 80 GB is 3/7 of it, half its
     * memory */
    x = import_one("slurm",
                   "2 part gpu:tesla_v100-sxm3-32gb:16\n1 part mig:nvidia_a100_3g.40gb:7\n");
    import_word(&x, "nodes[0].device", "V100-SXM3-32GB");
    import_number(&x, "nodes[0].count", 2);
    import_word(&x, "nodes[1].device", "A100-SXM-80GB-MIG-3g-40gb");
    import_number(&x, "devices.A100-SXM-80GB-MIG-3g-40gb.dense_TFLOPS.bf16", 312 * 3 / 7.0);
    import_free(&x);
}

/* The name of a group is what the names of its nodes begin with, in whole characters: e acute and e
 * grave share their first byte, and the 60th byte of the long name is inside a character. */
static void names_end_with_whole_characters(void **state)
{
    (void)state;
    struct import x = import_one("slurm", "NodeName=gpu\xc3\xa9 Gres=gpu:h100:8\n"
                                          "NodeName=gpu\xc3\xa8 Gres=gpu:h100:8\n");
    import_word(&x, "nodes[0].name", "gpu");
    import_number(&x, "nodes[0].count", 2);
    import_word(&x, "nodes[0].x-nodes", "gpu\xc3\xa9,gpu\xc3\xa8");
    import_free(&x);
    x = import_one("slurm",
                   "NodeName=a\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                   "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                   "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                   "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 Gres=gpu:h100:8\n");
    json_t *name = import_at(x.doc, "nodes[0].name");
    assert_non_null(name);
    assert_int_equal(json_string_length(name), 59);
    import_free(&x);
}

static void slurm_json_of_all_ages(void **state)
{
    (void)state;
    struct import x =
        import_one("slurm_json", "{\"meta\":{},\"nodes\":[{\"name\":\"n1\",\"gres\":\"gpu:h100:8\","
                                 "\"state\":[\"IDLE\",\"DRAIN\"],"
                                 "\"real_memory\":1},{\"name\":\"n2\",\"gres\":\"\",\"tres\":\"cpu="
                                 "1,gres/gpu=8\",\"state\":\"mixed\","
                                 "\"state_flags\":[\"DRAIN\"],\"features\":\"h100\"}]}");
    import_number(&x, "nodes[0].count", 2);
    import_word(&x, "nodes[0].state", "drain");
    import_free(&x);
    x = import_one("slurm_json",
                   "{\"sinfo\":[{\"node\":{\"state\":[\"IDLE\"]},\"nodes\":{\"total\":2,"
                   "\"nodes\":[\"a\",\"b\"]},\"gres\":{\"total\":\"gpu:l4:4\"}}]}");
    import_number(&x, "nodes[0].count", 2);
    import_word(&x, "nodes[0].device", "L4-24GB");
    import_free(&x);
}

/* Partitions and names are kept; slurm.conf has defaults, gres.conf lists device files; tables may
 * have a state and nothing else that is known. */
static void slurm_partitions_and_configuration(void **state)
{
    (void)state;
    struct import x = import_one(
        "slurm", "# slurm.conf\nnodename=DEFAULT RealMemory=515000 Gres=gpu:h100:8\n"
                 "NodeName=a[1-2] Feature=ib\nNodeName=b1 Gres=gpu:l4:2\n"
                 "PartitionName=big Nodes=a[1-2],b1 Default=YES\nPartitionName=all Nodes=ALL\n"
                 "PartitionName=one Nodes=a2\n");
    import_word(&x, "nodes[0].name", "a1");
    import_word(&x, "nodes[0].device", "H100-SXM-80GB");
    import_word(&x, "nodes[0].x-partition", "big,all");
    import_word(&x, "nodes[1].x-partition", "big,all,one");
    import_word(&x, "nodes[2].device", "L4-24GB");
    import_free(&x);
    x = import_one("slurm", "NodeName=g[1-3] Name=gpu Type=t4 File=/dev/nvidia[0-3]\n"
                            "NodeName=g4 Name=gpu Type=a40 Count=2\n");
    import_number(&x, "nodes[0].devices", 4);
    import_word(&x, "nodes[0].x-nodes", "g1,g2,g3");
    import_number(&x, "nodes[1].devices", 2);
    import_free(&x);
    /* scontrol show partition: sums over the nodes; not every node of the first one has a GPU */
    x = import_one(
        "slurm",
        "PartitionName=batch\n   Nodes=o[1-6] TotalNodes=6 TRES=cpu=6,gres/gpu=2,gres/gpu:p100=2\n"
        "PartitionName=gpu\n   Nodes=o[5-6]\n   TotalNodes=2 "
        "TRES=cpu=2,gres/gpu=4,gres/gpu:p100=4\n"
        "PartitionName=dyn Nodes=(null) TotalNodes=0 TRES=(null)\n");
    import_number(&x, "nodes[0].count", 2);
    import_number(&x, "nodes[0].devices", 2);
    import_word(&x, "nodes[0].x-partition", "batch,gpu");
    import_says(&x, HV_IMPORT_IGNORED, 0, "4 nodes without an accelerator");
    import_free(&x);
    /* sinfo with the node once per partition, and by partition */
    x = import_one("slurm", "n1 0 8 0/4/0/4 idle gpu* gpu:t4:2\nn1 0 8 0/4/0/4 idle dev gpu:t4:2\n"
                            "n2 0 8 0/4/0/4 down* gpu* gpu:t4:2\n");
    import_word(&x, "nodes[0].x-partition", "gpu,dev");
    import_word(&x, "nodes[1].state", "drain");
    import_free(&x);
    x = import_one("slurm", "na1|none|Unknown|mixed\nna2|none|Unknown|down\n");
    import_absent(&x, "nodes[0].state");
    import_word(&x, "nodes[1].state", "drain");
    import_free(&x);
    x = import_one("slurm", "cpu|5|mixed|x\ngpu|10|idle|a100\n");
    import_number(&x, "nodes[0].count", 5);
    import_number(&x, "nodes[1].count", 10);
    import_word(&x, "nodes[1].x-partition", "gpu");
    import_free(&x);
    x = import_one("slurm", "PARTITION AVAIL NODES STATE GRES MEMORY\n"
                            "gpu* up 3 idle gpu:a100:8 2000000\n");
    import_number(&x, "nodes[0].count", 3);
    import_word(&x, "nodes[0].device", "A100-SXM-80GB");
    import_word(&x, "nodes[0].x-partition", "gpu");
    import_free(&x);
    x = import_one("slurm", "GRES\ngpu:t4:3\ngpu:t4:2,nsight:1\n");
    import_number(&x, "nodes[0].devices", 3);
    import_says(&x, HV_IMPORT_GUESSED, 1, "does not count nodes");
    import_free(&x);
    x = import_one("sbatch",
                   "#SBATCH -p gpu-h100\n#SBATCH --gpus-per-task=2 --ntasks-per-node=4\n");
    import_word(&x, "nodes[0].x-partition", "gpu-h100");
    import_number(&x, "nodes[0].devices", 8);
    import_says(&x, HV_IMPORT_GUESSED, 0, "by the feature \"gpu-h100\"");
    import_free(&x);
}

/* 25 Gb/s = 3.125 GB/s; several names: the fastest. Other words with digits are no network. */
static void slurm_features_name_the_network(void **state)
{
    (void)state;
    struct import x =
        import_one("slurm", "NodeName=a1 Gres=gpu:a100-sxm-80gb:8 Feature=25gbe\n"
                            "NodeName=b1 Gres=gpu:h100:8 Features=100GE,ib-ndr,rack7\n"
                            "NodeName=c1 Gres=gpu:t4:2 Feature=sky25,1t,ge,hdrx,25gbex\n");
    import_number(&x, "nodes[0].nic.bandwidth_GBps", 3.125);
    import_number(&x, "nodes[1].nic.bandwidth_GBps", 50);
    import_absent(&x, "nodes[2].nic");
    import_says(&x, HV_IMPORT_UNDERSTOOD, 1, "network of 25 Gb/s, by a feature");
    import_free(&x);
}

/* 40 nodes in 20 partitions are 20 groups, which differ in nothing that counts; few stay as they
 * are. */
static void like_groups_of_a_large_import_are_one(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        struct hv_str text = {0};
        int n = large ? 40 : 8;
        for (int i = 0; i < n; i++) {
            hv_str_addf(&text, "NodeName=n%02d Gres=gpu:t4:4%s\n", i, i == 5 ? " State=DRAIN" : "");
        }
        for (int i = 0; i < n; i += 2) {
            hv_str_addf(&text, "PartitionName=p%02d Nodes=n%02d,n%02d\n", i / 2, i, i + 1);
        }
        struct import x = import_one("slurm", hv_str_cstr(&text));
        if (large) {
            import_number(&x, "nodes[0].count", 39);
            import_word(&x, "nodes[0].name", "n");
            import_number(&x, "nodes[1].count", 1);
            import_word(&x, "nodes[1].state", "drain");
            import_absent(&x, "nodes[2]");
            import_says(&x, HV_IMPORT_UNDERSTOOD, 0,
                        "21 groups that differ in partition or type alone are joined to 2");
            const char *in = json_string_value(json_object_get(
                json_array_get(json_object_get(hv_import_cluster(x.im), "nodes"), 0),
                "x-partition"));
            assert_non_null(strstr(in, "p00,p01,p02,p03"));
        } else {
            import_number(&x, "nodes[0].count", 2);
            import_number(&x, "nodes[4].count", 2);
        }
        import_free(&x);
        hv_str_free(&text);
    }
}

static void kubernetes(void **state)
{
    (void)state;
    struct import x = import_one(
        "k8s_nodes",
        "{\"kind\":\"List\",\"items\":[{\"kind\":\"Node\",\"metadata\":{\"name\":\"g1\",\"labels\":"
        "{"
        "\"nvidia.com/gpu.product\":\"NVIDIA-A100-SXM4-40GB-SHARED\",\"nvidia.com/"
        "gpu.count\":\"2\","
        "\"nvidia.com/gpu.replicas\":\"4\",\"nvidia.com/gpu.memory\":\"40960\","
        "\"topology.kubernetes.io/zone\":\"z\"}},\"spec\":{\"unschedulable\":true},"
        "\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"8\"}}},"
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"g2\",\"labels\":{\"nvidia.com/gpu.product\":"
        "\"NVIDIA-A100-SXM4-40GB\"}},\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"0\","
        "\"nvidia.com/mig-3g.20gb\":\"2\"}}}]}");
    import_number(&x, "nodes[0].devices", 2); /* cards, not shares of them */
    import_word(&x, "nodes[0].device", "A100-SXM-40GB");
    import_word(&x, "nodes[0].state", "drain");
    import_word(&x, "nodes[0].zone", "z");
    import_word(&x, "nodes[1].device", "A100-SXM-40GB-MIG-3g-20gb");
    import_free(&x);
    x = import_one("k8s_nodes",
                   "kind: Node\nmetadata: &m\n  name: y1\n  labels:\n"
                   "    nvidia.com/gpu.product: Tesla-T4\n    nvidia.com/gpu.count: \"2\"\n"
                   "status:\n  capacity:\n    nvidia.com/gpu: \"2\"\n---\nkind: Node\n"
                   "metadata: {name: y2}\nstatus: {capacity: {cpu: 4}}\n");
    import_word(&x, "nodes[0].device", "T4-16GB");
    import_says(&x, HV_IMPORT_IGNORED, 0, "1 nodes without");
    import_free(&x);
    /* names of clouds and makers are guesses, a memory decides */
    x = import_one(
        "k8s_nodes",
        "{\"kind\":\"List\",\"items\":[{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"labels\":"
        "{\"karpenter.k8s.aws/instance-gpu-name\":\"a100\",\"karpenter.k8s.aws/"
        "instance-gpu-memory\":\"81920\"}},\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"8\"}}},"
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"b\"},\"status\":{\"capacity\":{"
        "\"amd.com/gpu\":\"4\"}}}]}");
    import_word(&x, "nodes[0].device", "A100-SXM-80GB");
    import_says(&x, HV_IMPORT_GUESSED, 0, "\"a100\" may be A100-SXM-80GB or A100-PCIe-80GB");
    import_word(&x, "nodes[1].device", "MI300X-192GB");
    import_says(&x, HV_IMPORT_GUESSED, 0, "\"amd.com/gpu\" may be MI300X-192GB, MI250X-128GB");
    import_free(&x);
}

static void batch_scripts_ask_for_nodes(void **state)
{
    (void)state;
    struct import x =
        import_one("sbatch", "#!/bin/bash\n#SBATCH --nodes=2-4 --gres=gpu:h100:8 # why\n"
                             "#SBATCH hetjob\n#SBATCH -N1 --gpus-per-node=a100:4\nsrun x\n");
    import_number(&x, "nodes[0].count", 2);
    import_number(&x, "nodes[0].devices", 8);
    import_number(&x, "nodes[1].devices", 4);
    import_word(&x, "nodes[1].device", "A100-SXM-40GB");
    import_free(&x);
    import_refused("#SBATCH --exclusive\n", 20, HV_ENO, "no GPUs");
}

static void prices_complete_a_cluster(void **state)
{
    (void)state;
    static const char list[] =
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,"
        "Price,SpotPrice,Region,AvailabilityZone\n"
        "p4d,A100,8.0,96.0,1152.0,\"{\"\"Gpus\"\": [1, 2]}\",32.77,,us-east-1,a\n"
        "p4d,A100,8.0,96.0,1152.0,,31.0,9.1,us-east-2,a\n"
        ",V100,1.0,,,,2.48,0.74,x,\nm5,,,2.0,8.0,,0.1,0.04,x,y\n";
    struct import x = import_one("cloud_prices", list);
    import_word(&x, "nodes[0].name", "p4d");
    import_number(&x, "nodes[0].price_usd_per_hour", 31);
    import_number(&x, "nodes[0].spot_usd_per_hour", 9.1);
    import_word(&x, "nodes[0].zone", "us-east-2");
    import_says(&x, HV_IMPORT_IGNORED, 0, "1 rows without an accelerator");
    import_free(&x);
    const char *const both[] = {"NODELIST GRES\nx1 gpu:a100:8\n", list, NULL};
    x = import_texts(both);
    import_word(&x, "nodes[0].name", "x1");
    import_number(&x, "nodes[0].price_usd_per_hour", 31);
    import_absent(&x, "nodes[1]");
    import_free(&x);
}

/* Lists of others: titles and members of many words, prices per card, in cents, of spot machines;
 * machines whose name tells the cards. Each is a node of eight (one) cards. */
static void prices_of_many_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text, *device;
        double cards, usd, spot;
    } rows[] = {
        {"Vendor,GPU Type,GPU Arch,GPUs,GPU RAM,vCPUs,RAM,Per-Hour,Per-GPU,Idle time charged?\n"
         "Modal,A100 (40 GB),Ampere,8,320,8,40,21.83,5.45,Yes\n",
         "A100-SXM-40GB", 8, 21.83, 0},
        {"instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size\n"
         "i1,us,4.0,30,240,8,A10,24.0,False,\ni1,us,1.5,30,240,8,A10,24.0,True,\n",
         "A10-24GB", 8, 4, 1.5},
        {"GPU;Count of cards;GPUs;Price per GPU [USD/h]\nH100 SXM;8;8;2.5\n", "H100-SXM-80GB", 8,
         20, 0},
        {"InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,"
         "SpotPrice\n"
         "x,A100,8.0,2,4,1.5,no,\"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]}\",\n",
         "A100-SXM-80GB", 8, 1.5, 0},
        /* Lambda */
        {"{\"data\":{\"gpu_8x_a100_80gb_sxm4\":{\"instance_type\":{\"name\":\"gpu_8x_a100_80gb_"
         "sxm4\","
         "\"price_cents_per_hour\":1432,\"specs\":{\"vcpus\":240,\"gpus\":8}},"
         "\"regions_with_capacity_available\":[]},\"cpu_4x\":{\"instance_type\":{\"name\":\"cpu_"
         "4x\","
         "\"price_cents_per_hour\":14}}}}",
         "A100-SXM-80GB", 8, 14.32, 0},
        /* AWS: spot price history */
        {"{\"SpotPriceHistory\":[{\"AvailabilityZone\":\"us-east-1a\",\"InstanceType\":\"p4d."
         "24xlarge\","
         "\"ProductDescription\":\"Linux/UNIX\",\"SpotPrice\":\"9.83\"},{\"InstanceType\":"
         "\"p4d.24xlarge\",\"ProductDescription\":\"Windows\",\"SpotPrice\":\"3.0\"}]}",
         "A100-SXM-40GB", 8, 0, 9.83},
        /* AWS: price list, with JSON in a string */
        {"{\"PriceList\":[\"{\\\"product\\\":{\\\"attributes\\\":{\\\"instanceType\\\":\\\"p5."
         "48xlarge\\\",\\\"gpu\\\":\\\"8\\\",\\\"operatingSystem\\\":\\\"Linux\\\"}},\\\"terms\\\":"
         "{"
         "\\\"OnDemand\\\":{\\\"X\\\":{\\\"priceDimensions\\\":{\\\"Y\\\":{\\\"pricePerUnit\\\":{"
         "\\\"USD\\\":\\\"98.32\\\"}}}}}}}\"]}",
         "H100-SXM-80GB", 8, 98.32, 0},
        /* Azure */
        {"{\"Items\":[{\"currencyCode\":\"USD\",\"retailPrice\":27.2,\"armRegionName\":\"eastus\","
         "\"meterName\":\"ND96asr A100 v4\",\"productName\":\"VM ND "
         "Linux\",\"type\":\"Consumption\","
         "\"armSkuName\":\"Standard_ND96asr_v4\"},{\"currencyCode\":\"USD\",\"retailPrice\":10.9,"
         "\"meterName\":\"ND96asr A100 v4 Spot\",\"type\":\"Consumption\",\"armSkuName\":"
         "\"Standard_ND96asr_v4\"},{\"retailPrice\":1.0,\"type\":\"Reservation\",\"armSkuName\":"
         "\"Standard_ND96asr_v4\"}]}",
         "A100-SXM-40GB", 8, 27.2, 10.9},
        /* Google Cloud: a card alone */
        {"{\"skus\":[{\"description\":\"Nvidia Tesla T4 GPU running in Americas\",\"category\":{"
         "\"usageType\":\"OnDemand\"},\"pricingInfo\":[{\"pricingExpression\":{\"tieredRates\":[{"
         "\"unitPrice\":{\"currencyCode\":\"USD\",\"units\":\"0\",\"nanos\":350000000}}]}}]}]}",
         "T4-16GB", 1, 0.35, 0},
        /* Vast */
        {"{\"offers\":[{\"gpu_name\":\"RTX "
         "4090\",\"num_gpus\":8,\"dph_total\":3.2,\"gpu_ram\":24564,"
         "\"min_bid\":1.1}]}",
         "RTX4090-24GB", 8, 3.2, 1.1},
        {"[{\"gpuModel\":\"MI300X\",\"price\":\"$1.50\",\"provider\":\"runpod\"}]", "MI300X-192GB",
         1, 1.5, 0},
        /* ec2instances.info */
        {"[{\"instance_type\":\"g5.48xlarge\",\"GPU\":8,\"GPU_model\":\"NVIDIA "
         "A10G\",\"GPU_memory\":192,"
         "\"pricing\":{\"us-east-1\":{\"linux\":{\"ondemand\":\"16.288\",\"spot_avg\":\"5.1\"}}}}]",
         "A10G-24GB", 8, 16.288, 5.1},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct import x = import_one("cloud_prices", rows[i].text);
        double usd = json_number_value(import_at(x.doc, "nodes[0].price_usd_per_hour"));
        double spot = json_number_value(import_at(x.doc, "nodes[0].spot_usd_per_hour"));
        const char *device = json_string_value(import_at(x.doc, "nodes[0].device"));
        double cards = json_number_value(import_at(x.doc, "nodes[0].devices"));
        if (!device || strcmp(device, rows[i].device) != 0 || fabs(cards - rows[i].cards) > 0.1 ||
            fabs(usd - rows[i].usd) > 1e-6 || fabs(spot - rows[i].spot) > 1e-6) {
            fail_msg("text %zu: %g x %s, %g, %g", i, cards, device ? device : "?", usd, spot);
        }
        import_absent(&x, "nodes[1]");
        import_free(&x);
    }
}

/* A spot price above the price on demand is left out, with a word about it. */
static void spot_prices_are_below_prices_on_demand(void **state)
{
    (void)state;
    struct import x =
        import_one("cloud_prices", "GPU,GPUs,Price,Spot\nL4,8,1.0,1.2\nT4,8,1.0,0.9\n");
    import_number(&x, "nodes[0].price_usd_per_hour", 1);
    import_absent(&x, "nodes[0].spot_usd_per_hour");
    import_number(&x, "nodes[1].spot_usd_per_hour", 0.9);
    import_says(&x, HV_IMPORT_IGNORED, 0, "is above its price on demand");
    import_free(&x);
}

/* Measured: 2 ranks on 2 nodes, the bus bandwidth is what the network cards carry. */
static void measurements_go_to_links(void **state)
{
    (void)state;
    struct import x = import_one(
        "nccl_tests",
        "+ srun all_reduce_perf -b 8\n# nThread 1 nGpus 1 minBytes 8\n"
        "[1,0]<stdout>:#  Rank  0 Group  0 Pid 1 on h1 device  0 [0x0f] NVIDIA H100 80GB HBM3\n"
        "[1,0]<stdout>:#  Rank  1 Group  0 Pid 2 on h2 device  0 [0x0f] NVIDIA H100 80GB HBM3\n"
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        "0: 0 0 float sum -1 13.0 0.00 0.00 0 13.0 0.00 0.00 0\nh:1:1 [0] NCCL INFO x\n"
        "0: 8192 2048 float sum -1 21.0 0.39 0.39 0 16.8 0.49 0.49 N/A\n"
        "0: 1000000000 250000000 float sum -1 20000 50.0 50.0 0 4565.6 235.18 235.18 0\n");
    import_number(&x, "nodes[0].nic.bandwidth_GBps", 50);
    import_number(&x, "nodes[0].count", 2);
    import_number(&x, "nodes[0].nic.latency_us", 10.42); /* (21 us - 8 KiB at 50 GB/s) / 2 steps */
    import_free(&x);
    /* the old layout has no root; no list of devices: the ratio 1.75 tells 8 ranks */
    x = import_one("nccl_tests",
                   "# size count type redop time algbw busbw error time algbw busbw error\n"
                   " 8388608 2048 float sum 40.0 200 350 N/A 35.0 0.2 0.2 N/A\n");
    import_number(&x, "nodes[0].devices", 8);
    import_number(&x, "nodes[0].intra.bandwidth_GBps", 350);
    import_free(&x);
    /* the log names the host, nvidia-smi does not: with as many cards it is one machine */
    const char *const one[] = {
        "GPU 0: NVIDIA H200 (UUID: GPU-0)\nGPU 1: NVIDIA H200 (UUID: GPU-1)\n",
        "# nThread 1 nGpus 2\n"
        "#  Rank  0 Group  0 Pid 1 on h1 device  0 [0x0f] NVIDIA H200\n"
        "#  Rank  1 Group  0 Pid 1 on h1 device  1 [0x0f] NVIDIA H200\n"
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        " 1000000000 250000000 float sum -1 2500 400 400 0 2500 400 400 0\n",
        NULL};
    x = import_texts(one);
    import_word(&x, "nodes[0].name", "h1");
    import_number(&x, "nodes[0].intra.bandwidth_GBps", 400);
    import_absent(&x, "nodes[1]");
    import_free(&x);
    import_refused("# nThread 1 nGpus 1 minBytes 8\nTest failed\n", 43, HV_ENO,
                   "no row of measurements");
    x = import_one("nvbandwidth",
                   " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n"
                   " 65536 5000 400.0 392.0 0.7\n");
    import_number(&x, "nodes[0].nic.bandwidth_GBps", 49);
    import_free(&x);
}

/* Rows of other versions, launchers, collectives and programs. */
static void measurements_of_many_forms(void **state)
{
    (void)state;
    static const char *const texts[] = {
        /* one way of running only */
        "#  size count type redop root time algbw busbw #wrong\n"
        " 1073741824 268435456 float sum -1 10045 106.89 200.42 0\n",
        /* titles name a column that the rows lack; tags of srun look like YAML */
        "0: # size count type redop time algbw busbw error time algbw busbw error\n"
        "0: 1073741824 268435456 float 10045 106.89 200.42 N/A 10045 106.89 200.42 N/A\n",
        /* the out-of-place run is missing */
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        " 1073741824 268435456 bfloat16 sum -1 N/A N/A N/A N/A 10045 106.89 200.42 0\n",
        /* words of a log in front; no titles; thousands and decimal commas */
        "# nThread 1\npod-0 12:01:02 1,073,741,824 268435456 float sum -1 10045 106,89 200,42 0\n",
        /* tags of mpirun from the first line on, which look like JSON */
        "[1,0]<stdout>:# size count type redop root time algbw busbw #wrong\n"
        "[1,0]<stdout>: 1073741824 268435456 float sum -1 10045 106.89 200.42 0\n",
        /* without type and time */
        "# size algbw busbw\n 1073741824 106.89 200.42\n",
        "Size Count Type Time AlgBw BusBw\n1G 268435456 float 10045 106.89 200.42\n",
        /* rccl-tests as CSV */
        "numCycle,Name,Ranks,size,type,redop,inplace,time,algbw,busbw,#wrong\n"
        "0,AllReduce,8,1073741824,float,sum,0,10045,106.89,200.42,0\n",
        /* JSON */
        "{\"version\":\"2.17\",\"config\":{\"nranks\":16},\"results\":[{\"size\":1073741824,"
        "\"type\":\"float\",\"out_of_place\":{\"time\":10045,\"alg_bw\":106.89,\"bus_bw\":"
        "200.42}}]}",
    };
    for (size_t i = 0; i < HV_COUNT(texts); i++) {
        struct import x = import_one("nccl_tests", texts[i]);
        double bus = json_number_value(import_at(x.doc, "nodes[0].intra.bandwidth_GBps"));
        double nic = json_number_value(import_at(x.doc, "nodes[0].nic.bandwidth_GBps"));
        if (fabs(bus + nic - 200.42) > 0.05) {
            fail_msg("text %zu: %g and %g", i, bus, nic);
        }
        import_free(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_the_cards_not_the_slices),
        cmocka_unit_test(csv_with_and_without_header),
        cmocka_unit_test(lists_and_links_of_cards),
        cmocka_unit_test(topology_tells_islands_switches_and_nics),
        cmocka_unit_test(nccl_topology),
        cmocka_unit_test(slurm_text),
        cmocka_unit_test(names_end_with_whole_characters),
        cmocka_unit_test(slurm_json_of_all_ages),
        cmocka_unit_test(slurm_partitions_and_configuration),
        cmocka_unit_test(slurm_features_name_the_network),
        cmocka_unit_test(like_groups_of_a_large_import_are_one),
        cmocka_unit_test(kubernetes),
        cmocka_unit_test(batch_scripts_ask_for_nodes),
        cmocka_unit_test(prices_complete_a_cluster),
        cmocka_unit_test(prices_of_many_forms),
        cmocka_unit_test(spot_prices_are_below_prices_on_demand),
        cmocka_unit_test(measurements_go_to_links),
        cmocka_unit_test(measurements_of_many_forms),
    };
    return cmocka_run_group_tests(tests, import_setup, import_teardown);
}
