"""Exchange of expert counts: what each rank receives, and where rows begin at their receivers."""
import torch
import torch.distributed as dist


def operation(counts, align, recv_counts, recv_offsets, expert_starts, send_offsets) -> None:
    """counts, send_offsets: [world * per]; recv_*: [per, world]; expert_starts: [per + 1]; int32."""
    world, rank = dist.get_world_size(), dist.get_rank()
    table = torch.empty(world, counts.numel(), dtype=counts.dtype, device=counts.device)
    dist.all_gather_into_tensor(table, counts)
    table = table.view(world, world, -1).permute(1, 2, 0)  # holder, expert, source
    lengths = (table.sum(dim=2) + align - 1) // align * align
    starts = torch.nn.functional.pad(lengths.cumsum(dim=1), (1, 0)).to(torch.int32)
    offsets = starts[:, :-1, None] + table.cumsum(dim=2) - table
    recv_counts.copy_(table[rank])
    recv_offsets.copy_(offsets[rank])
    expert_starts.copy_(starts[rank])
    send_offsets.copy_(offsets[:, :, rank].flatten())


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, align = dist.get_world_size(), 64
    for per in (4, 16):
        make = lambda *shape: torch.empty(shape, dtype=torch.int32, device="cuda")
        counts = torch.randint(0, 20, (world * per,), dtype=torch.int32, device="cuda")
        operation(counts, align, make(per, world), make(per, world), make(per + 1), make(world * per))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
