"""Row-distributed sparse product: wanted columns to their owners, entries back, then the sums."""
import torch
import torch.distributed as dist


def operation(x, columns, index, value, y) -> None:
    """x: [entries], columns: [needed], index and value: [rows, per_row], y: [rows]."""
    world, entries = dist.get_world_size(), x.numel()
    owner = columns // entries
    order = torch.argsort(owner, stable=True)
    wanted = torch.bincount(owner, minlength=world)
    given = torch.empty_like(wanted)
    dist.all_to_all_single(given, wanted)
    wanted, given = wanted.tolist(), given.tolist()
    asked = torch.empty(sum(given), dtype=columns.dtype, device=x.device)
    dist.all_to_all_single(asked, columns[order] % entries, given, wanted)
    came = torch.empty(columns.numel(), dtype=x.dtype, device=x.device)
    dist.all_to_all_single(came, x[asked.long()], wanted, given)
    entry = torch.empty_like(came)
    entry[order] = came
    y.copy_((value * entry[index.long()]).sum(1))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for rows, needed, entries in ((512, 1024, 32768), (2048, 4096, 65536)):
        x = torch.randint(-1000, 1001, (entries,), device="cuda").float()
        columns = torch.randint(0, world * entries, (needed,), dtype=torch.int32, device="cuda")
        index = torch.randint(0, needed, (rows, 16), dtype=torch.int32, device="cuda")
        value = torch.randint(-4, 5, (rows, 16), device="cuda").float()
        operation(x, columns, index, value, torch.empty(rows, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
